# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Cutting a server's bytes into whole replies, whatever the protocol.

A subclass finds the end of one reply (`scan`); this base keeps what is not whole yet. A large reply is appended to and
looked at again only when enough bytes are there, from where the last look ended: linear however it is cut into packets.

A large reply for which there is no memory is read and dropped, and an error of the protocol takes its place: the
replies behind it, which are for others, are not held up.
"""

from __future__ import annotations

import cython

from hyper_proxy.common.memory import MEMORY
from hyper_proxy.conn_pool.reply_error import ReplyError

__all__ = ["ReplyError", "ReplyParser"]

LARGE_BYTES = 65536  # shorter replies are never dropped
MAX_REPLY_BYTES = 1 << 30  # twice what a redis server stores in one value; an array without end must end somewhere


@cython.cclass
class ReplyParser:
    """Feed it bytes as they arrive; it returns the replies that are whole."""

    rest: bytearray | None  # an unfinished reply
    need: cython.Py_ssize_t  # bytes that `rest` must hold before another look makes sense
    position: cython.Py_ssize_t  # where the scan of the unfinished reply goes on
    open: cython.Py_ssize_t  # what the scan of the unfinished reply still has to find; its meaning is the subclass's
    dropping: cython.bint  # the unfinished reply
    swallow: cython.Py_ssize_t  # the next so many bytes are of a value that is dropped

    def __init__(self) -> None:
        self.rest = None
        self.need = self.position = self.open = self.swallow = 0
        self.dropping = False

    @cython.ccall
    def feed(self, data: bytes) -> list:
        """The replies completed by these bytes, in order. Raises ReplyError."""
        if self.rest is not None:
            return self._resume(self.rest, data)
        out: list = []
        p: cython.p_uchar = data
        n: cython.Py_ssize_t = len(data)
        start: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        while start < n:
            end = self.scan(p, start, n)
            if end < 0:
                self.rest = bytearray(data[start:])
                break
            if start == 0 and end == n:
                out.append(data)
            else:
                out.append(p[start:end])
            start = end
        return out

    @property
    def is_clean(self) -> bool:
        """Is nothing left over behind the last reply?"""
        return self.rest is None

    @cython.ccall
    def drop_if_short(self) -> None:
        """After a feed that has completed nothing: if memory is short, keep no more of a large reply than its place."""
        rest: bytearray | None = self.rest
        if rest is None or not self.dropping:
            if rest is None or self.need < LARGE_BYTES or not MEMORY.is_short():
                return
            self.dropping = True
            MEMORY.dropped += 1
        if self.position:
            del rest[: self.position]
            self.need -= self.position
            self.position = 0
        left: cython.Py_ssize_t = self.need - 2 - len(rest)
        if left > 0:  # in the middle of a value, which gives its place to an empty one; CR and LF are still to come
            self.rest = bytearray(self.empty_value(rest))
            self.need = len(self.rest) + 2
            self.swallow = left

    def empty_value(self, rest: bytearray) -> bytes:
        """The first line of an empty value of the same kind as the one that `rest` begins with."""
        raise ReplyError("no protocol")

    def apology(self) -> bytes:
        """The error that takes the place of a reply for which there is no memory."""
        raise ReplyError("no protocol")

    @cython.cfunc
    def _resume(self, rest: bytearray, data: bytes) -> list:
        out: list = []
        if self.swallow:
            if len(data) <= self.swallow:
                self.swallow -= len(data)
                return out
            data = data[self.swallow :]
            self.swallow = 0
        rest += data
        if len(rest) > MAX_REPLY_BYTES:
            raise ReplyError("a reply is longer than any that makes sense")
        n: cython.Py_ssize_t = len(rest)
        if n < self.need:
            return out
        p: cython.p_uchar = rest
        start: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        while start < n:
            end = self.scan(p, start, n)
            if end < 0:
                break
            if self.dropping:
                self.dropping = False
                out.append(self.apology())
            else:
                out.append(bytes(memoryview(rest)[start:end]))
            start = end
        if start == n:
            self.rest = None
        elif start:
            self.rest = rest[start:]
        return out

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def scan(self, p: cython.p_uchar, start: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The index after the reply that begins at `start`, or what `wait_for` returns. Raises ReplyError."""
        raise ReplyError("no protocol")

    @cython.cfunc
    def wait_for(
        self, need: cython.Py_ssize_t, position: cython.Py_ssize_t, open: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Say that the reply is not whole: how many bytes of it are needed at least, and where to go on. Returns -1."""
        self.need = need
        self.position = position
        self.open = open
        return -1
