# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The two ends of the express way, a client and its session, as far as they call each other for every request.

They stand in layers of which the lower one does not know the upper; and calls by these types are calls in C.
"""

from __future__ import annotations

from typing import Any

import cython


@cython.cclass
class Taker:
    """A session."""

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take_express(self, data: bytes) -> cython.bint:
        """Bytes have come: are they taken, and will answer_express be called when they are answered?"""
        raise NotImplementedError

    @cython.cfunc
    def answer_express(self) -> None:
        """What was taken is answered."""
        raise NotImplementedError


@cython.cclass
class Giver:
    """A client."""

    stalled: cython.bint  # has it not yet taken all that was written?
    turn: Any  # a gevent.lock.Semaphore, once several greenlets write

    @cython.ccall
    def answer_express(self, out: bytes, later: bytes | None) -> None:
        """The answer to what was taken; `later`: what is not taken of it, None for nothing, b"" to end the client."""
        raise NotImplementedError
