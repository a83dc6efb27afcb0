# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""shadow: the first child serves; the second sees a part of the requests, and nobody waits for it.

What it can't take at once it does not get: those are counted as errors of its server, of kind "skipped". With
`compare` its replies to reads are compared with those that were served; a difference counts as kind "differs".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cython

from hyper_proxy.common import log
from hyper_proxy.stats.classes import READ

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import JointLeg, RouteLane

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.conn_pool.routes.route import Setting

SERVED = 0
SHADOW = 1
LOG_AGAIN_S = 1.0  # differences are logged at most so often, and all are counted


@cython.cclass
class ShadowLane(RouteLane):
    """The lanes of the child that serves and of the shadow."""

    def __init__(self, lanes: Sequence[Lane], setting: Setting) -> None:
        super().__init__(lanes, setting)
        self.fraction = setting.route.option("fraction")
        self.compare = setting.route.option("compare")
        self.logged_at = 0.0

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """The shadow makes nobody wait."""
        lane: Lane = self.lanes[SERVED]
        return lane.is_full(klass)

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        served: Lane = self.lanes[SERVED]
        shadow: Lane = self.lanes[SHADOW]
        if self.fraction < 1 and random.random() >= self.fraction:
            served.submit(raw, klass, gather, position)
            return
        if shadow.is_full(klass):
            shadow.node.errors["skipped"] += 1
            served.submit(raw, klass, gather, position)
            return
        if not self.compare or klass != READ:
            served.submit(raw, klass, gather, position)
            shadow.submit(raw, klass, None, 0)
            return
        leg: ShadowLeg = ShadowLeg(raw, klass, gather, position, self)
        served.submit(raw, klass, leg, SERVED)
        shadow.submit(raw, klass, leg, SHADOW)

    def note_difference(self, size: int) -> None:
        """The shadow has answered a request of so many bytes otherwise."""
        served: Lane = self.lanes[SERVED]
        shadow: Lane = self.lanes[SHADOW]
        shadow.node.errors["differs"] += 1
        if now() - self.logged_at >= LOG_AGAIN_S:
            self.logged_at = now()
            where = {"instance": shadow.node.instance, "node": served.node.label, "shadow": shadow.node.label}
            log.warning("shadow.differs", **where, request_bytes=size)


@cython.cclass
class ShadowLeg(JointLeg):
    """A read whose two replies are compared. One that fails is not among them."""

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        self.replies[position] = reply
        served, shadow = self.replies
        if served is not None and shadow is not None and served != shadow:
            cython.cast(ShadowLane, self.route).note_difference(len(self.raw))
        if position == SERVED:
            self.answer(reply)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        """There is nothing to compare with."""
        if position == SERVED:
            self.give_up(error)
