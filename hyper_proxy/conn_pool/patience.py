# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""How long a lane waits for its server. Two bounds, and the nearer one holds:

    silence   read_s from the last byte that the server sent or took, or from the oldest open question
    answer    read_s from the moment a question is the oldest open one, and read_s more for each SLOW_BYTES that come

Silence alone would let a server that sends a byte now and then hold its clients for ever. The second bound is far from
everything that works: a large reply over a slow line earns its time by its bytes.
"""

import cython

from hyper_proxy.common.sockio import untaken

SLOW_BYTES: cython.Py_ssize_t = 1024
LARGE_BYTES: cython.Py_ssize_t = 65536  # sends above this take their time; smaller ones are not looked after


@cython.cclass
class Patience:
    """One lane's. read_s: 0 is without end; times are those of common/clock.py."""

    def __init__(self, read_s: float) -> None:
        self.read_s = read_s
        self.heard_at = 0.0
        self.head_at = 0.0
        self.heard = 0
        self.large = False
        self.taken = 0

    @cython.ccall
    def begin(self, at: cython.double) -> None:
        """A new connection."""
        self.heard_at = self.head_at = at
        self.heard = 0
        self.large = False

    @cython.ccall
    def hear(self, count: cython.Py_ssize_t, at: cython.double) -> None:
        """So many bytes have come."""
        self.heard_at = at
        self.heard += count

    @cython.ccall
    def advance(self, at: cython.double) -> None:
        """A question is answered: the one behind it is the oldest now."""
        self.head_at = at
        self.heard = 0

    @cython.ccall
    def say(self, count: cython.Py_ssize_t, bytes_out: cython.Py_ssize_t, fd: cython.int) -> None:
        """The kernel has taken `count` bytes at once, `bytes_out` in all: if that is much, the server is long at it."""
        if count > LARGE_BYTES and not self.large:
            self.large = True
            self.taken = bytes_out - untaken(fd)

    @cython.ccall
    def look(self, bytes_out: cython.Py_ssize_t, fd: cython.int, at: cython.double) -> None:
        """A bound is reached: has the server taken a part of a large request since the last look? Then both move."""
        if not self.large:
            return
        left: cython.Py_ssize_t = untaken(fd)
        before: cython.Py_ssize_t = self.taken
        self.taken = bytes_out - left
        if self.taken - before >= (SLOW_BYTES if left else 1):
            self.heard_at = self.head_at = at

    @cython.ccall
    def left(self, asked_at: cython.double, at: cython.double) -> cython.double:
        """Seconds until the nearer bound. asked_at: when the oldest open question was sent."""
        silence: cython.double = max(asked_at, self.heard_at) + self.read_s
        answer: cython.double = max(asked_at, self.head_at) + self.read_s * (1.0 + self.heard / float(SLOW_BYTES))
        return min(silence, answer) - at

    def fault(self, at: float) -> str:
        """What to say when the time is up."""
        if self.heard and at - self.heard_at < self.read_s / 2:
            return f"its answer comes too slowly: {self.heard} bytes in {round((at - self.head_at) * 1000)} ms"
        return f"no answer within {round(self.read_s * 1000)} ms"
