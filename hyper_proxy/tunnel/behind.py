"""Writes that are answered before what knows has them: they wait in this worker and go below a little later.

To everything above, what waits and what is below are one storage: reads find what waits, and whatever depends on a
present value, or counts or lists keys, waits until its keys are below. So all that holds of writing through a level
holds here, as long as this worker is the only one that writes (the configuration is refused with more).

What waits is bounded: who finds no room writes below at once, as all do without a level like this. A server below that
fails is tried again until it takes what waits; a value that it will never take is given up, counted and logged. What
waits is written below before the worker ends in good order; it is lost with a worker that is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from time import monotonic, time
from typing import TypeVar

import gevent
from gevent.event import Event

from hyper_proxy.common import faults, log
from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.storage.keyvalue import Change, Item, KeyValue, Put

T = TypeVar("T")

ROUND = 500  # keys that are written below in one go
FIRST_PAUSE_S = 0.05  # before a round that failed is tried again; it doubles ...
LAST_PAUSE_S = 2.0  # ... up to this
ENTRY_BYTES = 200  # what an entry takes beside its key and value
HOPELESS = frozenset(("value", "schema", "size"))  # kinds of failures that are the value's own
# Those that may be one value's, and keep no other from being written.
SUSPECT = frozenset(("protocol", "internal", "plugin"))


class Backlog:
    """What waits, by key, the last write only. Several generations of a configuration have the same one.

    lost: values that were given up; retries: rounds in which something failed that is tried again.
    """

    def __init__(self, instance: str, below: KeyValue, max_bytes: int) -> None:
        self.instance = instance
        self.below = below
        self.max_bytes = max_bytes
        self.waiting: dict[bytes, Put] = {}
        self.leaving: dict[bytes, Put] = {}  # being written just now
        self.bytes = 0
        self.lost = 0
        self.retries = 0
        self.failure: BackendError | None = None
        self.round_over = Event()
        self.running = False

    def __len__(self) -> int:
        return len(self.waiting.keys() | self.leaving.keys())

    def get(self, key: bytes) -> Put | None:
        """What waits for this key."""
        return self.waiting.get(key) or self.leaving.get(key)

    def add(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        """Take these in; False when there is no room for them."""
        size = sum(_size(key, put) for key, put in entries)
        if self.bytes + size > self.max_bytes:
            return False
        for key, put in entries:
            self._take(self.waiting, key)
            self.waiting[key] = put
            self.bytes += _size(key, put)
        if not self.running:
            self.running = True
            ACTIVE.add(self)
            gevent.spawn(self._run)
        return True

    def flush(self, keys: Sequence[bytes] | None = None) -> None:
        """Until none of these keys, or of all that wait now, waits any longer. Raises BackendError when below fails."""
        left = [key for key in (list(self.waiting) + list(self.leaving) if keys is None else keys) if self.get(key)]
        while left:
            self.round_over.wait()
            left = [key for key in left if self.get(key)]
            if left and self.failure is not None:
                raise self.failure

    def forget(self) -> None:
        """All of it: the storage below is to be emptied."""
        for key in list(self.waiting):
            self._take(self.waiting, key)
        while self.leaving:
            self.round_over.wait()

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        try:
            while self.waiting:
                gevent.sleep(0)  # what comes in this turn of the loop leaves together
                self.leaving = dict(islice(self.waiting.items(), ROUND))
                for key in self.leaving:
                    del self.waiting[key]
                self.failure = self._write(self.leaving)
                self.retries += self.failure is not None
                for key, put in self.leaving.items():
                    self.bytes -= _size(key, put)
                self.leaving = {}
                self.round_over.set()
                self.round_over = Event()
                if self.failure is not None:
                    gevent.sleep(pause)
                pause = FIRST_PAUSE_S if self.failure is None else min(pause * 2, LAST_PAUSE_S)
        finally:
            self.running = False
            ACTIVE.discard(self)

    def _write(self, entries: dict[bytes, Put], is_round: bool = True) -> BackendError | None:
        """Below; what that could not take waits on, behind all others, unless it was written again. Returns the
        failure; an unforeseen one is shown once a round."""
        error = self._put(list(entries.items()), is_round)
        if error is None:
            return None
        if len(entries) > 1 and (isinstance(error, ClientError) or error.kind in HOPELESS | SUSPECT):
            return self._write_singly(entries)  # which of them is it?
        if isinstance(error, ClientError) or error.kind in HOPELESS:
            self._give_up(entries, error)
            return None
        again = {key: put for key, put in entries.items() if key not in self.waiting}
        self.bytes += sum(_size(key, put) for key, put in again.items())
        self.waiting.update(again)
        return error

    def _put(self, entries: list[tuple[bytes, Put]], is_round: bool) -> BackendError | ClientError | None:
        """Below, or the failure."""
        try:
            self.below.put_many(entries)
        except (BackendError, ClientError) as error:
            return error
        except Exception as error:  # noqa: BLE001  what was answered must not be lost, and who waits for it must be told
            if is_round:
                faults.show(self)
            return BackendError(self.instance, self.below.kind, "internal", f"it could not be written: {error!r}")
        return None

    def _write_singly(self, entries: dict[bytes, Put]) -> BackendError | None:
        failures = [self._write({key: put}, is_round=False) for key, put in entries.items()]
        return next((failure for failure in failures if failure is not None), None)

    def _give_up(self, entries: dict[bytes, Put], error: Exception) -> None:
        self.lost += len(entries)
        log.error("behind.lost", instance=self.instance, keys=len(entries), why=str(error))

    def _take(self, group: dict[bytes, Put], key: bytes) -> None:
        put = group.pop(key, None)
        if put is not None:
            self.bytes -= _size(key, put)


def _size(key: bytes, put: Put) -> int:
    return len(key) + len(put.value) + ENTRY_BYTES


ACTIVE: set[Backlog] = set()
"""Those of this worker in which something waits."""


def drain(seconds: float) -> None:
    """Wait until all is below, at most so long: the worker ends. What is left is lost, which is counted and logged."""
    end = monotonic() + seconds
    for backlog in list(ACTIVE):
        while len(backlog) and monotonic() < end:
            backlog.round_over.wait(end - monotonic())
        if len(backlog):
            backlog.lost += len(backlog)
            log.error("behind.lost", instance=backlog.instance, keys=len(backlog), why="the worker ends")


class Behind(KeyValue):
    """`below`, and before it what waits. max_bytes: how much may; 0: nothing new. before: whose backlog goes on."""

    def __init__(self, instance: str, below: KeyValue, max_bytes: int, before: Behind | None = None) -> None:
        self.below = below
        self.kind = below.kind
        self.nodes = below.nodes
        self.keeps_versions = below.keeps_versions
        self.fields = below.fields
        self.max_bytes = max_bytes
        self.backlog: Backlog = before.backlog if before else Backlog(instance, below, max_bytes)

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        waiting = {key: put for key in keys if (put := self.backlog.get(key))}
        asked = [key for key in keys if key not in waiting]
        found = dict(zip(asked, self.below.read_many(asked), strict=True)) if asked else {}
        now = time()
        for key, put in waiting.items():
            over = put.expires_at is not None and put.expires_at <= now
            found[key] = None if over else Item(put.value, put.flags, put.expires_at, 0)
        return [found[key] for key in keys]

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        self.backlog.flush(keys)
        return self.below.get_many(keys)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        if not self.max_bytes or not self.backlog.add(list(dict(entries).items())):
            self.backlog.flush([key for key, _ in entries])
            self.below.put_many(entries)

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        return self._settled(keys, lambda: self.below.update(keys, change))

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        return self._settled([key for key, _ in entries], lambda: self.below.put_many_if_absent(entries))

    def delete_many(self, keys: Sequence[bytes]) -> int:
        return self._settled(keys, lambda: self.below.delete_many(keys))

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        return self._settled(keys, lambda: self.below.expire_many(keys, expires_at))

    def count(self) -> int:
        self.backlog.flush()
        return self.below.count()

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        self.backlog.flush()
        return self.below.scan(cursor, limit)

    def clear(self) -> None:
        self.backlog.forget()
        self.below.clear()

    def settle(self, keys: Sequence[bytes]) -> None:
        """Until these keys are below. Raises BackendError."""
        self.backlog.flush(keys)

    def pass_on(self, successor: KeyValue | None, then: Callable[[], None]) -> None:
        """Requests go to the successor now. `then` may be called when nothing needs `below` any longer."""
        if isinstance(successor, Behind) and successor.backlog is self.backlog:
            self.backlog.below = successor.below
            self.backlog.max_bytes = successor.max_bytes or self.backlog.max_bytes
            then()
        elif len(self.backlog):
            gevent.spawn(self._leave, then)
        else:
            then()

    def _leave(self, then: Callable[[], None]) -> None:
        while len(self.backlog):
            self.backlog.round_over.wait()
        then()

    def _settled(self, keys: Sequence[bytes], do: Callable[[], T]) -> T:
        self.backlog.flush(keys)
        return do()
