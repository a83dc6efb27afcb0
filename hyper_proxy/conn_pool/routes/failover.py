# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""failover, eject: where the first child fails, the next one is asked.

A request that may have been done already is only handed on when doing it twice does no harm: reads and idempotent
writes. What never reached a server is handed on whatever it is. Errors that a server answers are answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cython

from hyper_proxy.stats.classes import IDEMPOTENT

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import Leg, RouteLane

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.conn_pool.routes.route import Setting


@cython.cclass
class FailoverLane(RouteLane):
    """The lanes of the children, in the order in which they are asked. At most `rate` requests a second are handed on,
    so that what one pool could not carry does not bury the next; 0 is no limit."""

    def __init__(self, lanes: Sequence[Lane], setting: Setting) -> None:
        super().__init__(lanes, setting)
        self.rate = setting.route.option("rate")
        self.left = self.rate
        self.since = now()

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Clients wait for the first; what is handed on is bounded by its deadlines."""
        lane: Lane = self.lanes[0]
        return lane.is_full(klass)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def may_hand_on(self) -> cython.bint:
        if self.rate == 0:
            return True
        at: cython.double = now()
        if at - self.since >= 1:
            self.since = at
            self.left = self.rate
        self.left -= 1
        return self.left >= 0

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        lane: Lane = self.lanes[0]
        lane.submit(raw, klass, FailoverLeg(raw, klass, gather, position, self), 0)


@cython.cclass
class FailoverLeg(Leg):
    """The positions that it gives to lanes are their indexes."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: FailoverLane
    ) -> None:
        super().__init__(raw, klass, gather, position)
        self.route = route

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        self.answer(reply)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        following: cython.Py_ssize_t = position + 1
        repeatable: cython.bint = self.klass <= IDEMPOTENT or not error.sent
        if following == len(self.route.lanes) or not repeatable or not self.route.may_hand_on():
            self.give_up(error)
            return
        lane: Lane = self.route.lanes[following]
        lane.node.counts.handed_on += 1
        lane.submit(self.raw, self.klass, self, following)
