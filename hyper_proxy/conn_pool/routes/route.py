# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What all routes have in common: a RouteLane for each kind of connection, and a Leg for each request under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import random
from typing import TYPE_CHECKING

import cython

from hyper_proxy.config.copies import IN_TURN, keeping
from hyper_proxy.config.model import Route
from hyper_proxy.config.routes import home_of
from hyper_proxy.conn_pool.routes.speech import Speech
from hyper_proxy.conn_pool.target import Junction

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.node import Node
    from hyper_proxy.conn_pool.target import Target


@dataclass(frozen=True, slots=True)
class Setting:
    """Of which route, and what else its lanes must know: `speech` is that of the servers."""

    route: Route
    speech: Speech


@cython.cclass
class RouteLane(Lane):
    """A lane without a connection: `submit` hands the request to some of `lanes`, those of the children.

    It is counted where it is sent, so not here.
    """

    def __init__(self, lanes: Sequence[Lane], setting: Setting) -> None:  # not Lane's: there is nothing to connect
        self.lanes = list(lanes)
        self.setting = setting
        self.stand_for(lanes[home_of(setting.route)])

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Has one of the children too much to take?"""
        lane: Lane
        full: cython.bint = False
        for lane in self.lanes:
            full = full or lane.is_full(klass)
        return full

    def wait_for_room(self, klass: int) -> BackendError | None:
        """Wait for the first that is full; another one may have what is needed before it."""
        lane: Lane = next((lane for lane in self.lanes if lane.is_full(klass)), self.lanes[0])
        error = lane.wait_for_room(klass)
        return error if self.is_full(klass) else None

    def distrust(self, detail: str) -> BackendError:
        """Nobody knows any more which child has given the answer that did not fit: none is trusted."""
        errors = [lane.distrust(detail) for lane in self.lanes]
        return errors[0]


@cython.cclass
class Leg(Gather):
    """A request under way, in the place of whoever waits for it: `answer` and `give_up` tell that one the outcome.

    gather is None where nobody waits.
    """

    def __init__(self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int) -> None:
        # Not Gather's: no greenlet waits here.
        self.raw = raw
        self.klass = klass
        self.gather = gather
        self.position = position

    @cython.ccall
    def answer(self, reply: bytes) -> None:
        """This is the reply."""
        if self.gather is not None:
            self.gather.deliver(self.position, reply)

    @cython.ccall
    def give_up(self, error: BackendError) -> None:
        """There is no reply."""
        if self.gather is not None:
            self.gather.fail(self.position, error)


@cython.cclass
class JointLeg(Leg):
    """A request that several children have. replies: of each, by its index, bytes or a BackendError; None as long as
    there is none."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: RouteLane
    ) -> None:
        super().__init__(raw, klass, gather, position)
        self.route = route
        self.replies: list = [None] * len(route.lanes)


class RouteTarget(Junction[RouteLane]):
    """children: nodes or routes; make: from their lanes and a Setting to a RouteLane."""

    def __init__(
        self, setting: Setting, children: Sequence[Target], make: Callable[[Sequence[Lane], Setting], RouteLane]
    ) -> None:
        super().__init__()
        self.setting = setting
        self.children = list(children)
        self.make = make

    @property
    def home(self) -> Node:
        """The server to which a client's own connection goes (transactions, blocking commands)."""
        return self.children[home_of(self.setting.route)].home

    @property
    def keeping(self) -> list[Target]:
        """The children in which a level above another keeps copies."""
        return [self.children[index] for index in keeping(self.setting.route)]

    @cached_property
    def places(self) -> list[Target]:
        """Those of these children; a shadow is told of what the first of them is told, and nobody waits for it."""
        places = list(dict.fromkeys(place for child in self.keeping for place in child.places))
        if self.setting.route.kind == "shadow":
            places[0] = RouteTarget(self.setting, [places[0], self.children[1]], self.make)
        return places

    def open_lanes(self) -> list[Lane]:
        """Those of the children that are connected; where one is asked after the other, of the first that is: that one
        is asked then, and finds a mark where there is one to be found."""
        route = self.setting.route
        found = [lanes for child in self.keeping if (lanes := child.open_lanes())]
        if route.kind in IN_TURN:
            found = found[:1]
        elif route.kind == "shadow" and random() < route.option("fraction"):
            found.append(self.children[1].open_lanes())
        return [lane for lanes in found for lane in lanes]

    def make_lane(self, greeting: Greeting, index: int) -> RouteLane:
        return self.make([child.lane(greeting, index) for child in self.children], self.setting)
