# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The lane of a group of servers, and a request under way in it, which goes on to where an answer sends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cython

from hyper_proxy.stats.classes import ADMIN, READ

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import Leg, RouteLane

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.topology.group import Group


@cython.cclass
class FollowLane(RouteLane):
    """`lanes` are the master's, then those of the replicas that may be read from."""

    def __init__(self, group: Group, greeting: Greeting, index: int, lanes: Sequence[Lane]) -> None:
        self.group = group
        self.index = index
        self.stand_for(lanes[0])
        self.greeting = greeting
        self.strict = group.reads == "replica"
        self.turn = 0
        self.turn_to(lanes)

    def turn_to(self, lanes: Sequence[Lane]) -> None:
        """Other servers are asked from now on."""
        self.lanes = list(lanes)
        self.node = lanes[0].node
        self.reading = self.strict or len(self.lanes) > 1

    @property
    def connected_at(self) -> float:
        """Of the connection to the master."""
        return self.lanes[0].connected_at

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Has the master too much to take? For reads of replicas: have all of them?"""
        lane: Lane
        index: cython.Py_ssize_t
        if not self.reading or klass != READ:
            lane = self.lanes[0]
            return lane.is_full(klass)
        for index in range(1, len(self.lanes)):
            lane = self.lanes[index]
            if not lane.is_full(klass):
                return False
        return len(self.lanes) > 1

    def wait_for_room(self, klass: int) -> BackendError | None:
        lane: Lane = self.choose(klass)
        return lane.wait_for_room(klass)

    @cython.cfunc
    def choose(self, klass: cython.Py_ssize_t) -> Lane:
        """The master's; for a read that of a replica, in turn, when there are some: one that is full is passed over."""
        if not self.reading or klass != READ:
            return self.lanes[0]
        readers: cython.Py_ssize_t = len(self.lanes) - 1
        if readers == 0:
            return self.group.nobody.lane(self.greeting)
        lane: Lane = self.lanes[0]
        for _ in range(readers):
            self.turn += 1
            lane = self.lanes[1 + self.turn % readers]
            if not lane.is_full(klass):
                break
        return lane

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        leg: FollowLeg = FollowLeg.__new__(FollowLeg)  # no __init__: its call alone would cost as much as all the rest
        leg.raw = raw
        leg.klass = klass
        leg.gather = gather
        leg.position = position
        leg.route = self
        leg.tries = 0
        leg.began = 0.0
        lane: Lane = self.choose(klass)
        leg.asked = lane
        lane.submit(raw, klass, leg, 0)


@cython.cclass
class FollowLeg(Leg):
    """asked: the lane that has it now; tries: how often it was sent on; began: when it first had to wait, or 0."""

    route: FollowLane
    asked: Lane
    tries: cython.Py_ssize_t
    began: cython.double

    @cython.ccall
    def ask(self, lane: Lane, before: bytes) -> None:
        """Send it there, right behind the request `before`, whose answer nobody reads."""
        self.asked = lane
        if before:
            lane.submit(before, ADMIN, None, 0)
        lane.submit(self.raw, self.klass, self, 0)

    def again(self) -> None:
        """Send it to whoever has it by now."""
        self.ask(self.route.choose(self.klass), b"")

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        if isinstance(reply, bytes) and reply[0] == 45 and self.route.group.topology.follow(self, reply):
            return
        self.answer(reply)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        if not self.route.group.topology.lost(self, error):
            self.give_up(error)
