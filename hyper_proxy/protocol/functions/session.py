# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One client of a protocol of six functions: the walk over its requests, each answered by these functions.

A key-value storage is asked, so requests are answered in the client's greenlet, one after the other, in order.
"""

from __future__ import annotations

from typing import Any

import cython

from hyper_proxy.common import parallel, witness
from hyper_proxy.common.clock import now as clock_now
from hyper_proxy.common.errors import BackendError, HyperProxyError
from hyper_proxy.common.plugin_error import NOTHING, Owner, PluginError, Question, guarded, place_of_function, shown
from hyper_proxy.protocol.functions.found import fault_of
from hyper_proxy.protocol.functions.given import Given
from hyper_proxy.protocol.functions.protocol import Client, Partly, Protocol, Request, plain
from hyper_proxy.protocol.functions.stopwatch import STOPWATCH
from hyper_proxy.protocol.look import Asked
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.stats.plugin_faults import report

if not cython.compiled:
    from hyper_proxy.protocol.session import LARGE_BYTES, Session

BEYOND = 1 << 48  # what is no number of bytes any more


@cython.cclass
class FunctionSession(Session):
    """protocol: the object that serves this client. owner: the plug-in whose it is; None when it is built in, and then
    what its functions raise unexpectedly ends the client, as a fault of any other part of the proxy does.

    A request that is not whole may be taken in pieces. `seen_from` is below 0 by what was taken before, so that the
    bytes of a batch are all bytes of its requests; what is taken of one that a later batch ends is not among them.

    requests, faults  of the present batch
    taken             bytes of an unfinished request that its `unserialize` keeps, of which `lacks` are still to come
    """

    def __init__(self, protocol: Protocol, owner: Owner | None, front: Any, client: Any) -> None:
        self.protocol = protocol
        self.owner = owner
        self.requests: list[Request] = []
        self.faults: list[HyperProxyError] = []
        self.described: Request | None = None
        self.taken = self.lacks = 0
        self.caller = Client(client.address, front.snapshot.instance)
        super().__init__(front, client)
        if owner is not None:
            STOPWATCH.start()
        try:
            opened = self.call("opened", self.caller)
            if not isinstance(opened, Protocol):
                raise self.misuse("opened", f"a Protocol is wanted, not {shown(opened)}")
            self.protocol = opened
        except HyperProxyError as fault:
            self.closing = True
            client.write(self.error_reply(fault))

    def adopt(self) -> None:
        self.storage = self.snapshot.storage if self.owner is None else Given(self.snapshot.storage, self.owner)
        self.limits = self.snapshot.instance.limits
        self.caller.instance = self.snapshot.instance

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def walk(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        n: cython.Py_ssize_t = len(buf)
        depth: cython.Py_ssize_t = self.depth
        if self.batch.express:
            return start  # the storage is waited for, which the greenlet does
        self.seen_from -= self.taken
        while start < n and depth > 0 and not self.closing:
            try:
                found: object = self.unserialize(buf, start)
            except HyperProxyError as fault:
                start = self.let_go(asked(fault, Question(f"buffer[{start}:{n}]", data=buf[start:])), n)
                break
            if isinstance(found, Partly):
                start = self.keep(found, buf, start)
                break
            if not isinstance(found, tuple):
                self.need = max(n - start + 1, found or 0)
                if self.taken + n - start > self.max_request:
                    start = self.let_go(self.too_long(), n)
                break
            request, start = found
            depth -= 1
            if self.taken:
                self.taken = self.lacks = 0
                self.note_rest()
            self.requests.append(request)
            self.say(self.reply(request))
            self.tally(request.klass)
            if request.close:
                self.closing = True
        return start

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def keep(self, partly: Any, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """A request that is not all there; the index behind what is taken of it."""
        end: cython.Py_ssize_t = partly.end
        self.say(plain(partly.reply))
        if end == start:
            self.need = len(buf) - start + 1
        self.taken += end - start
        self.lacks = min(partly.lacks, self.max_request + 1)
        rest: cython.Py_ssize_t = len(buf) - end if end == start else 0  # else it is asked for at once
        if self.taken + rest > self.max_request:
            end = self.let_go(self.too_long(), len(buf))
        self.note_rest()
        return end

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def let_go(self, fault: HyperProxyError, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the request ends that has come up to `end` is not known: the client is told why, and nothing more is
        read."""
        self.closing = True
        self.taken = self.lacks = 0
        self.say(self.error_reply(fault))
        self.tally(ADMIN)
        return end

    def too_long(self) -> HyperProxyError:
        """The fault of a request that grows without end."""
        return self.beyond("max_request_bytes", "the request is longer than")

    @cython.cfunc
    def note_rest(self) -> None:
        """What is taken of an unfinished request is kept for the client as well."""
        size: cython.Py_ssize_t = self.taken + (0 if self.rest is None else len(self.rest))
        if size >= LARGE_BYTES:
            self.client.kept = size
            self.client.lacking = self.lacks if self.taken else max(0, self.need - size)
        elif self.client.kept:
            self.client.kept = 0

    @cython.ccall
    def finish(self) -> None:
        self.seen_to -= self.taken
        Session.finish(self)
        self.requests.clear()
        self.faults.clear()
        self.described = None

    def say(self, reply: bytes) -> None:
        """The reply to the request at hand."""
        if reply:
            self.batch.add(reply)

    def unserialize(self, buf: bytes, start: int) -> tuple[Request, int] | Partly | int | None:
        """What the protocol makes of these bytes, which must be possible."""
        found = self.call("unserialize", buf, start)
        if found is None:
            return None
        if isinstance(found, int) and found > 0:
            return min(found, self.max_request + 1 - self.taken)
        if isinstance(found, Partly):
            if _is_possible(found, start, len(buf)):
                return found
            raise self.misuse("unserialize", fault_of(found, start, len(buf)))
        pair = self.listed("unserialize", found) if isinstance(found, list | tuple) else ()
        request, end = pair if len(pair) == 2 else (None, None)
        if not isinstance(request, Request) or not isinstance(end, int) or not start < end <= len(buf):
            raise self.misuse("unserialize", fault_of(found, start, len(buf)))
        return request, end

    def reply(self, request: Request) -> bytes:
        """The answer to one request, or the error in its place."""
        try:
            self.check(request)
            parts = self.call("split", request)
            if not isinstance(parts, list | tuple):
                raise self.misuse("split", f"a list is wanted, not {shown(parts)}")
            parts = self.listed("split", parts)
            since = clock_now()
            witness.forget()
            try:
                results = parallel.each(self.ask, parts)
            finally:
                self.batch.note_wait(witness.told(), 0.0, 0.0, clock_now() - since)
            return self.said("serialize", self.call("reduce", request, results))
        except HyperProxyError as fault:
            return self.error_reply(asked(fault, Question(request.command, request.keys)))

    def ask(self, part: Any) -> Any:
        """The result of one part."""
        return self.call("map", self.storage, part)

    def check(self, request: Request) -> None:
        """Hold a request against the limits of the instance. Raises LimitExceeded."""
        limits = self.limits
        for key in request.keys:
            if len(key) > limits.max_key_bytes:
                raise self.beyond("max_key_bytes", "a key is longer than")
        for value in request.values:
            if len(value) > limits.max_value_bytes:
                raise self.beyond("max_value_bytes", "a value is longer than")
        if len(request.keys) + len(request.values) > limits.max_arguments:
            raise self.beyond("max_arguments", "there are more keys and values than")

    def call(self, name: str, *args: Any) -> Any:
        """Call one of the protocol's functions. Raises PluginError for whatever else one of a plug-in raises."""
        return self.run(name, getattr(self.protocol, name), *args)

    def said(self, name: str, subject: Any) -> bytes:
        """What a function makes of it, for the client."""
        reply = self.call(name, subject)
        if not isinstance(reply, bytes):
            raise self.misuse(name, f"bytes is wanted, not {shown(reply)}")
        return plain(reply)

    def listed(self, name: str, found: list | tuple) -> list | tuple:
        """What a function has returned, read once: of a class of the plug-in that is its code, too."""
        return found if type(found) is list or type(found) is tuple else self.run(name, list, found)

    def run(self, name: str, function: Any, *args: Any) -> Any:
        """Run code of the protocol's, on behalf of one of its functions."""
        if self.owner is None:
            return function(*args)
        STOPWATCH.begin(self.owner, name)
        try:
            return guarded(self.owner, name, function, *args)
        finally:
            STOPWATCH.end()

    def misuse(self, name: str, reason: str) -> Exception:
        """The fault of a function that returns what it must not."""
        if self.owner is None:
            return TypeError(f"{name}: {reason}")
        return PluginError(self.owner, name, reason, place_of_function(getattr(self.protocol, name), self.owner))

    def error_reply(self, error: HyperProxyError) -> bytes:
        self.note_fault(error)
        try:
            return self.said("refuse", error)
        except HyperProxyError as fault:
            self.note_fault(asked(fault, Question(f"the error {error.kind}: {error}")))
            self.closing = True  # it can't even be told that it gets no answer
            return b""

    def note_fault(self, error: HyperProxyError) -> None:
        """Count it; log it, if it is a plug-in's."""
        self.faults.append(error)
        self.stats.error(error.kind)
        report(error, self.snapshot.instance.name)

    # --- for who looks closer

    def failures(self, slots: list | None) -> list:
        return [fault for fault in self.faults if isinstance(fault, BackendError)]

    def complaint(self, out: bytes) -> str:
        return (self.faults[0].word or self.faults[0].kind) if self.faults else ""

    def describe(self, buf: bytes, start: int, end: int, index: int) -> Asked | None:
        if index >= len(self.requests):
            return None
        request = self.described = self.requests[index]
        sizes = [len(value) for value in request.values] if request.values else None
        return Asked(request.command, list(request.keys), sizes=sizes)

    def sizes(self, asked: Asked, reply: bytes) -> list[int] | None:
        try:
            found = self.call("sizes", self.described, reply)
            if found is None:
                return None
            sizes = self.listed("sizes", found) if isinstance(found, list | tuple) else (None,)
            if not all(isinstance(size, int) and 0 <= size < BEYOND for size in sizes):
                raise self.misuse("sizes", f"a list of numbers of bytes is wanted, not {shown(found)}")
            return list(sizes)
        except HyperProxyError as fault:
            self.note_fault(fault)
            return None


def asked(fault: HyperProxyError, question: Question) -> HyperProxyError:
    """The same; one of a plug-in's code, if it does not know it itself, now with what it was asked."""
    if isinstance(fault, PluginError) and fault.asked is NOTHING:
        fault.asked = question
    return fault


def _is_possible(partly: Partly, start: int, size: int) -> bool:
    """Are these the fields of what is not all there in buffer[start:size]? A plug-in fills them in."""
    end, lacks = partly.end, partly.lacks
    numbers = isinstance(end, int) and start <= end <= size and isinstance(lacks, int) and lacks >= 0
    return numbers and isinstance(partly.reply, bytes)
