"""Storages of plug-ins: one object of the plug-in for each server, whose verbs run in threads, so that it may block.

    client's greenlet ──► Sharded ──► Apart ──turn within queue_ms──► a thread ──► the plug-in's object
                                            ◄── result within read_ms ──

Nobody can stop a thread that hangs. It keeps its turn, so at most THREADS of one server hang; then requests fail after
queue_ms, and the worker and its other instances go on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import gevent
import greenlet
from gevent import getcurrent
from gevent.exceptions import ConcurrentObjectUseError, InvalidThreadUseError
from gevent.lock import BoundedSemaphore
from gevent.monkey import get_original
from gevent.threadpool import ThreadPool

from hyper_proxy.common import witness
from hyper_proxy.common.errors import BackendError, ClientError, HyperProxyError
from hyper_proxy.common.plugin_error import (
    Owner,
    PluginError,
    Question,
    describe,
    fault_in,
    guarded,
    place_in,
    place_of,
    place_of_function,
)
from hyper_proxy.config.model import Level, Server
from hyper_proxy.stats.plugin_faults import report
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Put, Remove
from hyper_proxy.storage.plugged_answers import CHECKS, fault_of_items, fault_of_update, looked_at
from hyper_proxy.storage.plugged_threads import use_loops
from hyper_proxy.storage.sharded import Sharded

T = TypeVar("T")

THREADS = 8
"""Of one server of a level in one worker: requests that the plug-in may be busy with at a time."""
LINGER_S = 10.0
"""A storage that a reload takes away is closed so much later: requests that have begun with it still end with it."""

Make = Callable[[Server, Level], KeyValue]

get_native_ident = get_original("_thread", "get_ident")  # of the thread, where gevent's is of a greenlet


@dataclass(frozen=True, slots=True)
class Fault:
    """What a verb has raised in its thread."""

    error: BaseException


def _verb(name: str) -> Any:
    def call(self: Apart, *args: Any, **named: Any) -> Any:
        return self.run(name, *args, **named)

    call.__name__ = name
    return call


class Apart(KeyValue):
    """The key space of one server: the verbs that Sharded asks for, each that of `inner`."""

    def __init__(self, owner: Owner, instance: str, server: Server, level: Level, inner: KeyValue) -> None:
        self.owner = owner
        self.kind = level.storage
        self.instance = instance
        self.label = server.label
        self.queue_s = level.timeout.queue_ms / 1000
        self.read_s = level.timeout.read_ms / 1000
        self.inner = inner
        self.keeps_versions = inner.keeps_versions
        self._turns = BoundedSemaphore(THREADS)
        self._threads = ThreadPool(THREADS)
        self._closed = False

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        results: list[T] = []

        def watched(items: list[Item | None]) -> tuple[Sequence[Edit], T]:
            wrong = fault_of_items(items, len(keys))
            if wrong:
                raise ValueError(f"change was called with what is no item of each key: {wrong}")
            edits, result = change(items)
            results.append(result)
            return edits, result

        answer = self.run("update", keys, watched)
        self._refuse("update", looked_at(fault_of_update, answer, len(keys), results), (keys,))
        return answer[0], tuple(answer[1])

    get_many = _verb("get_many")
    put_many = _verb("put_many")
    count = _verb("count")
    scan = _verb("scan")
    clear = _verb("clear")
    put_many_if_absent = _verb("put_many_if_absent")
    delete_many = _verb("delete_many")
    expire_many = _verb("expire_many")

    def run(self, verb: str, *args: Any, **named: Any) -> Any:
        """The result of a verb; blocks this greenlet only. Raises BackendError (queue, timeout, io, plugin), or what
        the plug-in has raised of the project's errors."""
        witness.note(self.label)
        if self._closed:
            raise self._error("closed", "the storage is closed")
        if not self._turns.acquire(timeout=self.queue_s):
            text = f"{THREADS} requests are with the plug-in, and none has ended within {self.queue_s:g} s"
            raise self._error("queue", text)
        thread: list[Any] = []
        outcome = self._threads.spawn(self._in_thread, thread, getattr(self.inner, verb), args, named)
        outcome.rawlink(lambda _: self._turns.release())
        outcome.wait(self.read_s)
        if not outcome.ready():
            self._report(verb, f"it has not ended within {self.read_s:g} s", self._place_now(thread), args)
            outcome.rawlink(lambda late: self._tell_late(verb, late.value, args))
            raise self._error("timeout", f"{verb} has not ended within {self.read_s:g} s")
        result = outcome.get()
        if isinstance(result, Fault):
            raise self._typed(verb, result.error, args)
        if verb in CHECKS:
            self._refuse(verb, looked_at(CHECKS[verb], result, *args, **named), args)
        return result

    def _place_now(self, thread: Sequence[Any]) -> str:
        """FILE:LINE at which a verb is. Where it waits in a function that lets greenlets run (time.sleep, a socket),
        the loop of the thread is what runs, and the verb's own frames are those of its greenlet."""
        if not thread:
            return ""
        ident, greenlet = thread
        return place_in(sys._current_frames().get(ident), self.owner) or place_in(greenlet.gr_frame, self.owner)

    def _tell_late(self, verb: str, result: object, args: Sequence[Any]) -> None:
        """Its request was told of the time alone: why it has failed, if it has, nobody else will say."""
        if isinstance(result, Fault):
            reason = f"when nobody waited for it any more: {describe(result.error)}"
            self._report(verb, reason, place_of(result.error, self.owner), args, result.error)

    def _refuse(self, verb: str, wrong: str, args: Sequence[Any]) -> None:
        """Raises BackendError when something is wrong with an answer."""
        if wrong:
            reason = f"what {type(self.inner).__name__}.{verb} has returned is wrong: {wrong}"
            raise self._error("plugin", str(self._report(verb, reason, "", args)))

    def _report(
        self, verb: str, reason: str, at: str, args: Sequence[Any], error: BaseException | None = None
    ) -> PluginError:
        """Log a fault of a verb. Where no line of its own was running, that of its definition is named."""
        where = at or place_of_function(getattr(self.inner, verb), self.owner)
        fault = PluginError(self.owner, verb, f"{reason}{_hint(error)}", where, _question(args))
        report(fault, self.instance)
        return fault

    def close(self) -> None:
        """Tell the plug-in's object, and end the threads: one that hangs is waited for."""
        self._closed = True
        outcome = self._threads.spawn(self._in_thread, [], self.inner.release, (None,), {})
        outcome.wait(self.read_s)
        if outcome.ready() and isinstance(outcome.get(), Fault):
            self._typed("release", outcome.get().error, ())
        self._threads.kill()

    @staticmethod
    def _in_thread(thread: list[Any], call: Callable[..., T], args: Any, named: Any) -> T | Fault:
        thread += get_native_ident(), getcurrent()
        try:
            return call(*args, **named)
        except BaseException as error:  # noqa: BLE001  SystemExit, too, must not end the worker
            return Fault(error)

    def _typed(self, verb: str, error: BaseException, args: Sequence[Any]) -> HyperProxyError:
        reason = fault_in(error)
        if not reason and isinstance(error, HyperProxyError):
            return error
        fault = self._report(verb, reason, place_of(error, self.owner), args, error)
        if isinstance(error, OSError):
            return self._error("io", f"{verb}: {error}")
        return self._error("plugin", str(fault))

    def _error(self, kind: str, detail: str) -> BackendError:
        return BackendError(self.instance, self.label, kind, detail)


def _hint(error: BaseException | None) -> str:
    """What to do about an error whose own words do not tell."""
    if isinstance(error, greenlet.error | InvalidThreadUseError | ConcurrentObjectUseError):
        return "; a socket serves in the thread alone in which it was made: keep it in a threading.local()"
    return ""


def _question(args: Sequence[Any]) -> Question:
    """What a verb was asked: the keys, of entries (key, Put) too, or a cursor and a limit."""
    if args and isinstance(args[0], int):
        return Question(f"cursor {args[0]}, limit {args[1]}")
    asked = args[0] if args and isinstance(args[0], list | tuple) else ()
    keys = (one[0] if isinstance(one, tuple) else one for one in asked)
    return Question(keys=tuple(key for key in keys if isinstance(key, bytes)))


class PluggedStorage(Sharded):
    """The key space of a level: the servers of the plug-in, over which keys are spread as over any others."""

    forwards = False  # no front's bytes are sent on as they are

    def __init__(self, owner: Owner, make: Make, instance: str, level: Level) -> None:
        self.kind = level.storage
        self.settings = _settings(instance, level)
        use_loops()
        made = [guarded(owner, f"making '{server.label}'", make, server, level) for server in level.servers]
        self.parts = [
            Apart(owner, instance, server, level, inner) for server, inner in zip(level.servers, made, strict=True)
        ]
        super().__init__(self.parts)
        self.keeps_versions = all(part.keeps_versions for part in self.parts)

    def release(self, successor: Any) -> None:
        """Close when the requests that have begun must have ended."""
        for part in self.parts:
            gevent.spawn_later(LINGER_S, part.close)


class Plugged:
    """Makes the storages of one kind: a row of STORAGES, which keeps a storage whose level has not changed."""

    def __init__(self, owner: Owner, make: Make) -> None:
        self.owner = owner
        self.make = make

    def __call__(self, instance: str, level: Level, previous: PluggedStorage | None) -> PluggedStorage:
        """Raises BackendError when the plug-in's object can't be made."""
        if previous is not None and previous.settings == _settings(instance, level):
            return previous
        try:
            return PluggedStorage(self.owner, self.make, instance, level)
        except PluginError as error:
            detail = f"plug-in '{self.owner.name}' can't serve it: {error.reason} ({error.at})"
            raise BackendError(instance, level.servers[0].label, "plugin", detail) from error


def _settings(instance: str, level: Level) -> tuple[object, ...]:
    """What must be equal for a storage to be the same one; where keys are placed is set apart."""
    return instance, replace(level, hash="", distribution="", hash_tag="")


class ReadOnly(KeyValue):
    """A key space that can be read alone: a plug-in writes get_many, count and scan."""

    keeps_versions = False

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        """What changes nothing is possible."""
        edits, result = change(self.get_many(keys))
        if any(isinstance(edit, Put | Expire | Remove) for edit in edits):
            raise self.refusal()
        return result, (0,) * len(edits)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        raise self.refusal()

    def clear(self) -> None:
        raise self.refusal()

    def refusal(self) -> HyperProxyError:
        """What a client reads that wants to write."""
        return ClientError("this storage can only be read")
