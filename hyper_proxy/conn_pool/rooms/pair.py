"""A pair: two nodes of which one serves; what is known of both, and how it is decided which.

The state of a node and which one is active are words on a board that all workers share: whoever finds that the active
one is dead switches for all. What a worker has seen itself (doubts, signs of life) stays its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from socket import SHUT_RDWR
from time import monotonic, time
from typing import TYPE_CHECKING

from hyper_proxy.common import log
from hyper_proxy.common.board import Place

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.config.model import Rooms
    from hyper_proxy.conn_pool.node import Node

ROOMS = ("first", "second")

# Words of the place on the board; 0 is its name.
ACTIVE = 1  # the side that serves, plus one; 0: nobody has said it yet
EPOCH = 2  # how often that has changed
STATES = (3, 4)  # of the two sides, bits
SINCE = 5  # unix time of the last change
MISSED = (6, 7)  # grows with what a side has missed: requests, or generations of its journal

DOWN = 1  # it gives no sign of life, or has not done so for long enough
BEHIND = 2  # it has missed writes, or nobody knows
LOST = 4  # it has missed more than can be kept: only an operator can say when it is equal again

# How much a failure says, in signs of life that are missing. Kinds that are not here say nothing about the server.
DECISIVE = ("refused", "dns", "drained", "maintenance")
TELLING = ("timeout", "reset", "protocol")


class Pair:
    """nodes: of the first and of the second room. preferred: the side that serves while it can.

    clean_by  what makes a side equal that has missed something: "" (nothing, it is taken as it is), "empty", "copy"
    pin       the side that an operator wants, -1: none
    """

    def __init__(
        self, instance: str, rooms: Rooms, nodes: tuple[Node, Node], place: Place, preferred: int, clean_by: str
    ) -> None:
        self.instance = instance
        self.rooms = rooms
        self.nodes = nodes
        self.place = place
        self.words = place.words
        self.preferred = preferred
        self.clean_by = clean_by
        self.pin = -1
        self.doubts = [0, 0]
        self.heard_since: list[float | None] = [None, None]  # since when every sign of life has come
        self.last: BackendError | None = None  # of many requests that fail together it is one error
        self.epoch = 0
        self.waiting: list[Callable[[], None]] = []  # requests that wait for a verdict
        self.wake: Callable[[], None] = _nobody  # has both asked for a sign of life at once
        with place.board.lock(place.index, wait=True):
            if self.words[ACTIVE] == 0:
                self.words[ACTIVE] = preferred + 1
                if clean_by == "empty":
                    self.words[STATES[1 - preferred]] |= BEHIND
        self.epoch = self.words[EPOCH]

    @property
    def active(self) -> int:
        """The side that serves."""
        return int(self.words[ACTIVE]) - 1

    def state(self, side: int) -> int:
        """Bits: DOWN, BEHIND, LOST."""
        return int(self.words[STATES[side]])

    def can_serve(self, side: int) -> bool:
        """Might it be the active one?"""
        return self.words[STATES[side]] == 0 and not self.nodes[side].out

    def missed(self, side: int) -> int:
        """Keys that this worker has put into the journal of a side, and that were not copied yet."""
        return 0

    # ---- what is seen

    def suspect(self, side: int, error: BackendError) -> None:
        """A request or a question of this worker has failed."""
        if error is self.last or (error.kind not in DECISIVE and error.kind not in TELLING):
            return
        self.last = error
        self.heard_since[side] = None
        self.doubts[side] += self.rooms.failures if error.kind in DECISIVE else 1
        if self.doubts[side] >= self.rooms.failures:
            self.fell(side, str(error))
        else:
            self.wake()

    def heard(self, side: int) -> None:
        """It has answered."""
        self.doubts[side] = 0
        if side == self.active:
            self.decided()
        if self.heard_since[side] is None:
            self.heard_since[side] = monotonic()

    def has_held(self, side: int) -> bool:
        """Has it given every sign of life for as long as it must to serve again?"""
        since = self.heard_since[side]
        return since is not None and monotonic() - since >= self.rooms.hold_s

    # ---- what is decided

    def fell(self, side: int, why: str) -> None:
        """It does not serve any more, as far as there is somebody to take its place."""
        other = 1 - side
        with self.place.change() as mine:
            if not mine or self.state(side) & DOWN:
                return
            serves = self.active == side
            if serves and (self.pin == side or not self.can_serve(other)):
                self.decided()  # nobody can take its place: its clients are told
                return
            missed = self.clean_by == "empty"
            self.words[STATES[side]] |= DOWN | (BEHIND if missed else 0)
            if serves:
                self._serve(other)
        where = {"instance": self.instance, "node": self.nodes[side].label, "room": ROOMS[side]}
        if serves:
            log.warning("room.switched", **where, to=self.nodes[other].label, why=why)
        else:
            log.warning("room.spare_down", **where, why=why)
        self.follow()

    def miss(self, side: int) -> None:
        """The side that does not serve has missed something."""
        self.words[MISSED[side]] += 1
        self.words[STATES[side]] |= BEHIND

    def rise(self, side: int) -> None:
        """It answers, and has done so for long enough: it may be made equal, and serve then."""
        with self.place.change() as mine:
            if mine and self.state(side) & DOWN:
                self.words[STATES[side]] &= ~DOWN & 7

    def cleaned(self, side: int, missed: int) -> bool:
        """It is equal again, if it has missed nothing since its count was `missed`; is it?"""
        with self.place.change() as mine:
            if not mine or self.words[MISSED[side]] != missed or self.state(side) & (DOWN | LOST):
                return False
            self.words[STATES[side]] &= ~BEHIND & 7
            return True

    def settle(self) -> None:
        """Let the side serve that should, when it can."""
        wanted = self.preferred if self.pin < 0 else self.pin
        other = 1 - wanted
        if self.active == wanted or self.heard_since[wanted] is None or not self.can_serve(wanted):
            return
        with self.place.change() as mine:
            if not mine or self.active == wanted or not self.can_serve(wanted):
                return
            self._serve(wanted)
            if self.clean_by == "empty" and self.rooms.writes == "single":
                self.words[STATES[other]] |= BEHIND
        where = {"instance": self.instance, "node": self.nodes[wanted].label, "room": ROOMS[wanted]}
        log.info("room.returned", **where, instead_of=self.nodes[other].label, pinned=self.pin >= 0)
        self.follow()

    def _serve(self, side: int) -> None:
        self.words[ACTIVE] = side + 1
        self.words[EPOCH] += 1
        self.words[SINCE] = int(time())

    def follow(self) -> None:
        """Do here what a change means, whichever worker has made it: nobody waits any longer for one that is down."""
        if self.words[EPOCH] == self.epoch:
            return
        self.epoch = int(self.words[EPOCH])
        away = 1 - self.active
        dead = self.state(away) & DOWN
        if dead:
            self.nodes[away].pause.lengthen("its peer serves")  # so that nobody goes on to connect
        for lane in list(self.nodes[away].lanes):
            if dead or lane.patient:  # what a client waits for comes to the other one
                lane.abort("room", f"the {ROOMS[1 - away]} room serves in its place")
        for sock in self.nodes[away].relays:
            with suppress(OSError):  # its server may have ended it already
                sock.shutdown(SHUT_RDWR)
        self.decided()

    def decided(self) -> None:
        """Whoever waits for a verdict goes on."""
        waiting, self.waiting = self.waiting, []
        for go_on in waiting:
            go_on()


def _nobody() -> None:
    """Before there is a heart."""
