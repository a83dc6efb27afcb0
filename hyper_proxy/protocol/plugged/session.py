# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One client of a plug-in's protocol: the walk over its requests, each answered by the six functions of the plug-in.

A key-value storage is asked, so requests are answered in the client's greenlet, one after the other, in order.
"""

from __future__ import annotations

from typing import Any

import cython

from hyper_proxy.common import parallel
from hyper_proxy.common.clock import now as clock_now
from hyper_proxy.common.errors import ClientError, HyperProxyError
from hyper_proxy.common.plugin_error import Owner, PluginError, guarded, place_of_function
from hyper_proxy.protocol.look import Asked
from hyper_proxy.protocol.plugged.protocol import Protocol, Request
from hyper_proxy.protocol.plugged.stopwatch import STOPWATCH
from hyper_proxy.stats.plugin_faults import report

if not cython.compiled:
    from hyper_proxy.protocol.session import Session


@cython.cclass
class PluggedSession(Session):
    """protocol: that of the plug-in `owner`."""

    def __init__(self, protocol: Protocol, owner: Owner, front: Any, client: Any) -> None:
        self.protocol = protocol
        self.owner = owner
        STOPWATCH.start()
        super().__init__(front, client)

    def adopt(self) -> None:
        self.storage = self.snapshot.storage
        self.limits = self.snapshot.instance.limits

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def walk(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        n: cython.Py_ssize_t = len(buf)
        depth: cython.Py_ssize_t = self.depth
        if self.batch.express:
            return start  # the storage is waited for, which the greenlet does
        while start < n and depth > 0 and not self.closing:
            try:
                found: object = self.unserialize(buf, start)
            except HyperProxyError as fault:
                self.closing = True
                self.say(self.error_reply(fault))
                break
            if not isinstance(found, tuple):
                self.need = max(n - start + 1, found or 0)
                break
            request, start = found
            depth -= 1
            self.say(self.reply(request))
            self.tally(request.klass)
            if request.close:
                self.closing = True
        return start

    def say(self, reply: bytes) -> None:
        """The reply to the request at hand."""
        if reply:
            self.batch.add(reply)

    def unserialize(self, buf: bytes, start: int) -> tuple[Request, int] | int | None:
        """What the plug-in makes of these bytes, which must be possible."""
        found = self.call("unserialize", buf, start)
        if found is None or (isinstance(found, int) and found > 0):
            return found
        try:
            request, end = found
        except (TypeError, ValueError):
            request, end = None, None
        if not isinstance(request, Request) or not isinstance(end, int) or not start < end <= len(buf):
            raise self.misuse("unserialize", "a Request and the index behind it, a size, or None", found)
        return request, end

    def reply(self, request: Request) -> bytes:
        """The answer to one request, or the error in its place."""
        try:
            self.check(request)
            parts = self.call("split", request)
            if not isinstance(parts, list | tuple):
                raise self.misuse("split", "a list", parts)
            since = clock_now()
            try:
                results = parallel.each(self.ask, parts)
            finally:
                self.batch.note_wait("", 0.0, 0.0, clock_now() - since)
            reply = self.call("serialize", self.call("reduce", request, results))
            if not isinstance(reply, bytes):
                raise self.misuse("serialize", "bytes", reply)
        except HyperProxyError as fault:
            return self.error_reply(fault)
        return reply

    def ask(self, part: Any) -> Any:
        """The result of one part."""
        return self.call("map", self.storage, part)

    def check(self, request: Request) -> None:
        """Hold a request against the limits of the instance. Raises ClientError."""
        limits = self.limits
        if any(len(key) > limits.max_key_bytes for key in request.keys):
            raise ClientError(f"a key is longer than limits.max_key_bytes ({limits.max_key_bytes})")
        if any(len(value) > limits.max_value_bytes for value in request.values):
            raise ClientError(f"a value is longer than limits.max_value_bytes ({limits.max_value_bytes})")
        if len(request.keys) + len(request.values) > limits.max_arguments:
            raise ClientError(f"there are more keys and values than limits.max_arguments ({limits.max_arguments})")

    def call(self, name: str, *args: Any) -> Any:
        """Call one of the plug-in's functions."""
        STOPWATCH.begin(self.owner, name)
        try:
            return guarded(self.owner, name, getattr(self.protocol, name), *args)
        finally:
            STOPWATCH.end()

    def misuse(self, name: str, wanted: str, value: object) -> PluginError:
        """The fault of a function that returns what it must not."""
        function = getattr(self.protocol, name).__func__
        reason = f"{wanted} is wanted, not {repr(value)[:80]}"
        return PluginError(self.owner, name, reason, place_of_function(function, self.owner))

    def error_reply(self, error: HyperProxyError) -> bytes:
        self.stats.error(error.kind)
        report(error, self.snapshot.instance.name)
        try:
            reply = self.call("refuse", error)
            if not isinstance(reply, bytes):
                raise self.misuse("refuse", "bytes", reply)
        except HyperProxyError as fault:
            self.stats.error(fault.kind)
            report(fault, self.snapshot.instance.name)
            self.closing = True  # it can't even be told that it gets no answer
            return b""
        return reply

    def describe(self, buf: bytes, start: int, end: int, index: int) -> Asked | None:
        try:
            while start < end:
                found = self.unserialize(buf, start)
                if not isinstance(found, tuple):
                    return None
                request, start = found
                if index == 0:
                    sizes = [len(value) for value in request.values] if request.values else None
                    return Asked(request.command, list(request.keys), sizes=sizes)
                index -= 1
        except HyperProxyError:
            return None  # told when it was walked over
        return None
