# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""When the requests of a lane were sent, and so where a request's time went, for those who look (protocol/look.py).

There is one entry for all that left in one send, whatever their number. The oldest is kept apart: mostly it is the only
one, since a lane sends when the answers to what it has sent are there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import cython

if not cython.compiled:
    from hyper_proxy.common.clock import now

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.stats.histogram import Histogram


CLASSES = 4  # of hyper_proxy.stats.classes; flights.pxd repeats the number


@cython.cclass
class Flights:
    """latency: takes the time of every answer, in microseconds since its request was sent.

    by_class      how many requests the lane was given, by the class of their commands
    opened_at     when it was begun to connect
    ready_at      when the connection was made and greeted
    answering_at  when the replies came, or the failure, that are passed on just now; else 0.0
    refusing      what fails just now was never sent
    written       the server's name as it stands in the log, as of written_epoch
    """

    def __init__(self, latency: Histogram) -> None:
        self.latency = latency
        self.opened_at = self.ready_at = self.answering_at = 0.0
        self.refusing = False
        self.written = b""
        self.written_epoch = -1
        if not cython.compiled:
            self.by_class = [0] * CLASSES
        # How many requests had been sent with the oldest entry (0: there is none), and when.
        self.first_end = 0
        self.first_at = 0.0
        self.open: deque[tuple[int, float]] = deque()  # the same of those behind it

    @cython.ccall
    def depart(self, sent: cython.Py_ssize_t, at: cython.double) -> None:
        """`sent` requests have left so far, the last of them now."""
        if self.first_end:
            self.open.append((sent, at))
        else:
            self.first_end = sent
            self.first_at = at

    @cython.ccall
    def arrive(self, answered: cython.Py_ssize_t, count: cython.Py_ssize_t, at: cython.double) -> None:
        """After `answered` answers, `count` more have come."""
        target: cython.Py_ssize_t = answered + count
        while answered < target and self.first_end:
            end: cython.Py_ssize_t = min(self.first_end, target)
            self.latency.add(int((at - self.first_at) * 1e6), end - answered)
            answered = end
            if end == self.first_end:
                self.first_end = 0
                if self.open:
                    self.first_end, self.first_at = self.open.popleft()

    @cython.ccall
    def any(self) -> cython.bint:
        """Is an answer still to come?"""
        return self.first_end > 0

    @cython.ccall
    def oldest(self) -> cython.double:
        """When the oldest open request was sent; only when there is one."""
        return self.first_at

    def fail(self, entries: list, head: int, error: BackendError, sent: bool) -> None:
        """Tell those who wait in `entries` (gather, position, gather, position ...); sent: no answer comes any more."""
        error.sent = sent
        self.answering_at = now()
        self.refusing = not sent
        index: cython.Py_ssize_t = head
        try:
            while index < len(entries):
                index += 2
                if entries[index - 2] is not None:
                    entries[index - 2].fail(entries[index - 1], error)
        finally:
            if index < len(entries):  # a fault of one who waits is not the others'
                self.fail(entries, index, error, sent)
            self.answering_at = 0.0
            self.refusing = False
            if sent:
                self.first_end = 0
                self.open.clear()

    def counts(self) -> list[int]:
        """The requests that the lane was given, by class."""
        return [self.by_class[klass] for klass in range(CLASSES)]

    def journey(self, since: float) -> tuple[float, float, float]:
        """Where the time of a request went that was handed on at `since` and whose reply, or failure, is passed on now.

        Seconds until it was sent, without those in which the connection was made; these; seconds until the reply came.
        """
        at: cython.double = self.answering_at or now()  # a route's child has passed it on
        sent_at: cython.double = self.departed(since)
        connect_s: cython.double = self.connecting(since)
        return sent_at - since - connect_s, connect_s, at - sent_at

    @cython.ccall
    def connecting(self, since: cython.double) -> cython.double:
        """Seconds since then in which the connection was made, for what is passed on now."""
        if not self.refusing:
            return max(0.0, self.ready_at - max(since, self.opened_at))
        return self.answering_at - max(since, self.opened_at) if self.opened_at > self.ready_at else 0.0

    @cython.ccall
    def departed(self, since: cython.double) -> cython.double:
        """When the first of the open requests left that did not leave before then; now, if what fails never left."""
        at: cython.double
        if self.refusing:
            return self.answering_at
        if self.first_end and self.first_at >= since:
            return self.first_at
        for _, at in self.open:
            if at >= since:
                return at
        return since
