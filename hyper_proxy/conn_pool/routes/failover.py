# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""failover: where the first child fails, the next one is asked.

A request that may have been done already is only handed on when doing it twice does no harm: reads and idempotent
writes. What never reached a server is handed on whatever it is. Errors that a server answers are answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cython

from hyper_proxy.stats.classes import IDEMPOTENT

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import Leg, RouteLane

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError


@cython.cclass
class FailoverLane(RouteLane):
    """The lanes of the children, in the order in which they are asked."""

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        lane: Lane = self.lanes[0]
        lane.submit(raw, klass, FailoverLeg(raw, klass, gather, position, self.lanes), 0)


@cython.cclass
class FailoverLeg(Leg):
    """The positions that it gives to lanes are their indexes."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, lanes: list[Lane]
    ) -> None:
        super().__init__(raw, klass, gather, position)
        self.lanes = lanes

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        self.answer(reply)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        following: cython.Py_ssize_t = position + 1
        if following == len(self.lanes) or (error.sent and self.klass > IDEMPOTENT):
            self.give_up(error)
            return
        lane: Lane = self.lanes[following]
        lane.submit(self.raw, self.klass, self, following)
