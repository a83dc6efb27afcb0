# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""all, majority, any, fastest: every child is asked; the kinds differ in how many must succeed, and whom one waits for.

    all       answered when all have; the reply is the first child's when all have succeeded, else a failure
    majority  answered when more than half have succeeded, or can't any more
    any       answered when all have; one success is enough
    fastest   answered at the first success

The reply is that of the first of the children that have succeeded by then. A server that answers an error has failed,
too: when there is nothing better the client reads that error. So has one that can't take more, as long as enough others
can; else one waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cython

from hyper_proxy.common.errors import BackendError

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import JointLeg, RouteLane

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.routes.route import Setting


@cython.cclass
class QuorumLane(RouteLane):
    """need: so many must succeed; patient: is every child's answer waited for?"""

    def __init__(self, lanes: Sequence[Lane], setting: Setting) -> None:
        super().__init__(lanes, setting)
        kind = setting.route.kind
        self.need = {"all": len(lanes), "majority": len(lanes) // 2 + 1}.get(kind, 1)
        self.patient = kind in ("all", "any")

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Are there too few that can take more?"""
        lane: Lane
        free: cython.Py_ssize_t = 0
        for lane in self.lanes:
            if not lane.is_full(klass):
                free += 1
        return free < self.need

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        leg: QuorumLeg = QuorumLeg(raw, klass, gather, position, self)
        index: cython.Py_ssize_t
        lane: Lane
        choosy: cython.bint = not self.is_full(klass)
        for index, lane in enumerate(self.lanes):
            if choosy and lane.is_full(klass):
                leg.fail(index, lane.node.busy())
            else:
                lane.submit(raw, klass, leg, index)


@cython.cclass
class QuorumLeg(JointLeg):
    """open_count: so many have not answered; good: so many have succeeded; over: the client has its answer."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: QuorumLane
    ) -> None:
        super().__init__(raw, klass, gather, position, route)
        self.open_count = len(route.lanes)
        self.good = 0
        self.over = False

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        route: QuorumLane = cython.cast(QuorumLane, self.route)
        self.replies[position] = reply
        self.open_count -= 1
        if not isinstance(reply, BackendError) and not route.setting.speech.is_error(reply):
            self.good += 1
        if self.over:
            return
        enough: cython.bint = self.good >= route.need
        hopeless: cython.bint = self.good + self.open_count < route.need
        if self.open_count == 0 or (not route.patient and (enough or hopeless)):
            self.over = True
            self._decide(enough)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        self.deliver(position, error)

    def _decide(self, enough: bool) -> None:
        """Tell the first success when there are enough, else the first failure; errors of servers before others."""
        speech = self.route.setting.speech
        said = [reply for reply in self.replies if isinstance(reply, bytes)]
        wanted = [reply for reply in said if speech.is_error(reply) != enough]
        if wanted:
            self.answer(wanted[0])
        else:
            self.give_up(next(reply for reply in self.replies if isinstance(reply, BackendError)))
