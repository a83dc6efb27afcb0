"""A pair: two nodes of which one serves; what is known of both, and how it is decided which.

The state of a node and which one is active are words on a board that all workers share: whoever finds that the active
one is dead switches for all. What a worker has seen itself (doubts, signs of life) stays its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import SHUT_RDWR
from time import monotonic
from typing import TYPE_CHECKING

from gevent import get_hub

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
FELL = 5  # when one of them was last found dead, in milliseconds of CLOCK_MONOTONIC, the same for all processes
MISSED = (6, 7)  # grows with what a side has missed: requests, or generations of its journal

# Flags of a side are bytes of its word, each of which is stored by itself: nobody undoes what another has just set.
_DOWN, _BEHIND, _LOST, _CATCHING_UP = range(4)


def _flag(byte: int) -> int:
    """The flag as a bit of the word."""
    return int.from_bytes(bytes(int(at == byte) for at in range(8)), sys.byteorder)


DOWN = _flag(_DOWN)  # it gives no sign of life, or has not done so for long enough
BEHIND = _flag(_BEHIND)  # it has missed writes, or nobody knows
LOST = _flag(_LOST)  # it has missed more than is kept, or may lack anything: it must be emptied, and all copied
CATCHING_UP = _flag(_CATCHING_UP)  # what it has missed is being copied, and it gets all writes from now on

# How much a failure says, in signs of life that are missing. Kinds that are not here say nothing about the server.
DECISIVE = ("refused", "dns", "loading", "drained", "maintenance")
TELLING = ("timeout", "reset", "protocol")


class Pair:
    """nodes: of two rooms whose names these are, in any order that stays. preferred: the room that serves while it can.

    clean_by  what makes a side equal that has missed something: "keep" (nothing, it is taken as it is), "empty", "copy"
    pin       the side that an operator wants, -1: none
    """

    def __init__(
        self, instance: str, rooms: Rooms, nodes: Sequence[Node], names: Sequence[str], place: Place, preferred: str,
        clean_by: str,
    ) -> None:  # fmt: skip
        self.instance = instance
        self.rooms = rooms
        self.nodes = nodes
        self.names = names
        self.place = place
        self.words = place.words
        self.preferred = names.index(preferred)
        self.clean_by = clean_by
        self.alike = rooms.writes != "single"  # does the side that does not serve have the same?
        self.pin = names.index(rooms.pinned) if rooms.pinned else -1
        self.doubts = [0, 0]
        self.heard_since: list[float | None] = [None, None]  # since when every sign of life has come
        self.last: BackendError | None = None  # of many requests that fail together it is one error
        self.epoch = 0
        self.waiting: list[Callable[[], None]] = []  # requests that wait for a verdict
        self.count_missed: Callable[[int], int] = _none
        self.wake: Callable[[], None] = _nobody  # has both asked for a sign of life at once
        with place.board.lock(place.index, wait=True):
            if self.words[ACTIVE] == 0:
                self.words[ACTIVE] = self.preferred + 1
                if clean_by == "empty":
                    self._set(1 - self.preferred, _BEHIND)
        self.epoch = self.words[EPOCH]

    @property
    def active(self) -> int:
        """The side that serves."""
        return int(self.words[ACTIVE]) - 1

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of both nodes."""
        return tuple(node.server.address for node in self.nodes)

    def state(self, side: int) -> int:
        """Of DOWN, BEHIND, LOST, CATCHING_UP."""
        return int(self.words[STATES[side]])

    def can_serve(self, side: int) -> bool:
        """Might it be the active one?"""
        return self.words[STATES[side]] == 0 and not self.nodes[side].out

    def missed(self, side: int) -> int:
        """Keys that this worker has put into the journal of a side, and that were not copied yet."""
        return self.count_missed(side)

    def can_take_over(self, side: int) -> bool:
        """Might it become the active one by itself?"""
        return self.can_serve(side) and self.pin != 1 - side

    # ---- what is seen

    def suspect(self, side: int, error: BackendError) -> None:
        """A request or a question of this worker has failed."""
        if error is self.last or error.untried or (error.kind not in DECISIVE and error.kind not in TELLING):
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
        since, now = self.heard_since[side], monotonic()
        fell = self.words[FELL] / 1000
        if since is None or fell > now:  # of the time before the machine was started
            return since is not None and now - since >= self.rooms.hold_s
        return now - max(since, fell) >= self.rooms.hold_s

    # ---- what is decided

    def fell(self, side: int, why: str) -> None:
        """It does not serve any more, as far as there is somebody to take its place."""
        other = 1 - side
        with self.place.change() as mine:
            if not mine or self.state(side) & DOWN:
                return
            serves = self.active == side
            if serves and not self.can_take_over(other):
                self.decided()  # nobody can take its place: its clients are told
                return
            missed = self.clean_by == "empty"
            if missed:
                self._set(side, _BEHIND)
            self.words[FELL] = int(monotonic() * 1000)
            self._set(side, _DOWN)
            self._set(side, _CATCHING_UP, 0)
            if serves:
                self._serve(other)
        where = {"instance": self.instance, "node": self.nodes[side].label, "room": self.names[side]}
        if serves:
            log.warning("room.switched", **where, to=self.nodes[other].label, why=why)
        else:
            log.warning("room.spare_down", **where, why=why)
        self.follow()

    def miss(self, side: int) -> None:
        """The side that does not serve has missed something."""
        self.words[MISSED[side]] += 1
        self._set(side, _BEHIND)

    def rise(self, side: int) -> None:
        """It answers, and has done so for long enough: it may be made equal, and serve then."""
        with self.place.change() as mine:
            if mine and self.state(side) & DOWN:
                self._set(side, _DOWN, 0)

    def cleaned(self, side: int, missed: int) -> bool:
        """It is equal again, if it has missed nothing since its count was `missed`; is it?"""
        with self.place.change() as mine:
            if not mine or self.words[MISSED[side]] != missed or self.state(side) & (DOWN | LOST):
                return False
            self._set(side, _BEHIND, 0)
            self._set(side, _CATCHING_UP, 0)
            if self.words[MISSED[side]] != missed:  # since that was looked at above
                self._set(side, _BEHIND)
                return False
            return True

    def catch_up(self, side: int) -> bool:
        """It gets all writes from now on, while what it has missed before is copied; may it?"""
        with self.place.change() as mine:
            if not mine or self.state(side) & DOWN:
                return False
            self._set(side, _CATCHING_UP)
            return True

    def lose(self, side: int, why: str) -> None:
        """It may lack anything, or have too much."""
        known = self.state(side) & LOST and not self.state(side) & CATCHING_UP
        self.words[MISSED[side]] += 1
        self._set(side, _BEHIND)
        self._set(side, _LOST)
        self._set(side, _CATCHING_UP, 0)
        if known:
            return
        where = {"instance": self.instance, "node": self.nodes[side].label, "room": self.names[side]}
        log.error("room.lost", **where, why=why)
        if self.rooms.sync == "yes":
            try:
                self.place.board.to_disk()  # what it misses from now on is in no journal
            except OSError as error:  # it is known as long as the machine lives: better than no writes at all
                log.error("room.unsafe", **where, why=f"{self.rooms.folder}: {error.strerror}")

    def found(self, side: int) -> bool:
        """All that it may have lacked was copied, unless it was lost once more in the meantime."""
        with self.place.change() as mine:
            if not mine or self.state(side) & DOWN or not self.state(side) & CATCHING_UP:
                return False
            self._set(side, _LOST, 0)
            return True

    def start_with(self, side: int) -> None:
        """Before any request: the other one can't serve."""
        with self.place.change() as mine:
            if mine:
                self._serve(side)
        self.epoch = int(self.words[EPOCH])

    def begin_with(self, side: int) -> None:
        """Before any request: this side has served without the other one, which may have missed anything."""
        if self.clean_by == "keep":
            return
        with self.place.board.lock(self.place.index, wait=True):
            self.words[STATES[side]] = 0
            self._serve(side)
        self.epoch = int(self.words[EPOCH])
        if self.clean_by == "copy":
            self.lose(1 - side, "its peer has served without it")
        else:
            self.miss(1 - side)

    def renewed(self, side: int) -> None:
        """Its process began anew, and may have lost what it had: its peer knows better, if it can serve."""
        other, why = 1 - side, "it was started anew, and may have lost what it had"
        where = {"instance": self.instance, "node": self.nodes[side].label, "room": self.names[side], "why": why}
        with self.place.board.lock(self.place.index, wait=True):
            serves = self.active == side
            if serves and not self.can_take_over(other):
                log.error("room.doubtful", **where)
                return
            if serves:
                self._serve(other)
        if serves:
            log.warning("room.switched", **where, to=self.nodes[other].label)
        self.lose(side, why)
        self.follow()

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
                self._set(other, _BEHIND)
        where = {"instance": self.instance, "node": self.nodes[wanted].label, "room": self.names[wanted]}
        log.info("room.returned", **where, instead_of=self.nodes[other].label, pinned=self.pin >= 0)
        self.follow()

    def _set(self, side: int, flag: int, value: int = 1) -> None:
        self.place.bytes[STATES[side] * 8 + flag] = value

    def _serve(self, side: int) -> None:
        self.words[ACTIVE] = side + 1
        self.words[EPOCH] += 1
        self.nodes[side].counts.took_over += 1

    def follow(self) -> None:
        """Do here what a change means, whichever worker has made it: nobody waits any longer for one that is down."""
        if self.words[EPOCH] == self.epoch:
            return
        self.epoch = int(self.words[EPOCH])
        away = 1 - self.active
        dead = self.state(away) & DOWN
        if dead:
            self.heard_since[away] = None
            self.nodes[away].pause.lengthen("its peer serves")  # so that nobody goes on to connect
        for lane in list(self.nodes[away].lanes):
            if dead or lane.private:  # what a client waits for, and what it watches, changes there
                lane.abort("room", f"the {self.names[1 - away]} room serves in its place")
        for sock in self.nodes[away].relays:
            with suppress(OSError):  # its server may have ended it already
                sock.shutdown(SHUT_RDWR)
        self.decided()

    def decided(self) -> None:
        """Whoever waits for a verdict goes on: in the event loop, as all replies come, for whoever answers a client
        switches to it, and not back."""
        waiting, self.waiting = self.waiting, []
        for go_on in waiting:
            get_hub().loop.run_callback(go_on)


def _nobody() -> None:
    """Before there is a heart."""


def _none(side: int) -> int:
    """Where nothing is copied."""
    return 0
