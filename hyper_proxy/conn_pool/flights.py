# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""When the requests of a lane were sent: one entry for all that left in one send, whatever their number."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import cython

if TYPE_CHECKING:
    from hyper_proxy.stats.histogram import Histogram


@cython.cclass
class Flights:
    """latency: takes the time of every answer, in microseconds since its request was sent."""

    def __init__(self, latency: Histogram) -> None:
        self.latency = latency
        self.open: deque[tuple[int, float]] = deque()  # (requests sent by then, when)

    @cython.ccall
    def depart(self, sent: cython.Py_ssize_t, at: cython.double) -> None:
        """`sent` requests have left so far, the last of them now."""
        self.open.append((sent, at))

    @cython.ccall
    def arrive(self, answered: cython.Py_ssize_t, count: cython.Py_ssize_t, at: cython.double) -> None:
        """After `answered` answers, `count` more have come."""
        target: cython.Py_ssize_t = answered + count
        while answered < target:
            end: cython.Py_ssize_t
            sent_at: cython.double
            end, sent_at = self.open[0]
            if end <= target:
                self.open.popleft()
            else:
                end = target
            self.latency.add(int((at - sent_at) * 1e6), end - answered)
            answered = end

    @cython.ccall
    def any(self) -> cython.bint:
        """Is an answer still to come?"""
        return bool(self.open)

    @cython.ccall
    def oldest(self) -> cython.double:
        """When the oldest open request was sent; only when there is one."""
        at: cython.double = self.open[0][1]
        return at

    @cython.ccall
    def forget(self) -> None:
        """No answer will come any more."""
        self.open.clear()
