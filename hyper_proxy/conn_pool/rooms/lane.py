# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The lanes of a pair: a request goes to the node that serves, and to its peer when that one dies under it.

A read that fails is read from the peer at once, where that has the same. A write that fails must not be done there
while the others still use this node: it waits until it is decided whether this node is dead, which takes a question and
its deadline, and is then repeated where that is safe: when it was not sent, or may be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cython

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.rooms.pair import ACTIVE, DOWN, Pair
from hyper_proxy.stats.classes import IDEMPOTENT, READ

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import Leg


@cython.cclass
class RoomLane(Lane):
    """lanes: to the first and to the second room's node. is_error: is a reply a refusal?"""

    def __init__(self, lanes: Sequence[Lane], pair: Pair, is_error: Callable[[bytes], bool]) -> None:
        # Not Lane's: there is nothing to connect.
        self.lanes = list(lanes)
        self.pair = pair
        self.is_error = is_error
        self.words = pair.words
        self.stand_for(lanes[pair.active])

    @cython.cfunc
    def aim(self) -> Lane:
        """At the node that serves by now, which is then named where a request waits or is timed. Its lane."""
        side: cython.Py_ssize_t = self.words[ACTIVE] - 1
        lane: Lane = self.lanes[side]
        self.node = lane.node
        return lane

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Has the node that serves too much to take?"""
        return self.aim().is_full(klass)

    def wait_for_room(self, klass: int) -> BackendError | None:
        return self.aim().wait_for_room(klass)

    def distrust(self, detail: str) -> BackendError:
        """Nobody knows any more which node has given the answer that did not fit: none is trusted."""
        first, second = (lane.distrust(detail) for lane in self.lanes)
        return second if self.words[ACTIVE] == 2 else first

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        side: cython.Py_ssize_t = self.words[ACTIVE] - 1
        self.aim().submit(raw, klass, RoomLeg(raw, klass, gather, position, self), side)


@cython.cclass
class RoomLeg(Leg):
    """The positions that it gives to lanes are their sides."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: RoomLane
    ) -> None:
        super().__init__(raw, klass, gather, position)
        self.route = route
        self.again = False  # was it sent a second time?

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        self.answer(reply)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        pair: Pair = self.route.pair
        pair.suspect(position, error)
        if self.again or (error.sent and self.klass > IDEMPOTENT):
            self.give_up(error)
            return
        self.again = True
        # A read stays behind the writes before it, and is answered by who has the same, or serves.
        waits: cython.bint = self.klass != READ or bool(pair.waiting) or not pair.alike
        if waits and pair.active == position and pair.can_take_over(1 - position):
            pair.waiting.append(self.resend)
            pair.wake()
        elif pair.active != position or (self.klass == READ and pair.can_take_over(1 - position)):
            lane: Lane = self.route.lanes[1 - position]
            lane.submit(self.raw, self.klass, self, 1 - position)
        else:
            self.give_up(error)

    @cython.ccall
    def resend(self) -> None:
        """To the one that serves, whichever that is by now."""
        side: cython.Py_ssize_t = self.route.pair.active
        lane: Lane = self.route.lanes[side]
        lane.submit(self.raw, self.klass, self, side)


@cython.cclass
class MarkLane(RoomLane):
    """Of caches: whatever is no read goes to both nodes, so that none of them keeps what is no longer so. The answer is
    that of the one that serves, when both have answered; what its peer does not answer has to be made up for."""

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        if klass == READ:
            RoomLane.submit(self, raw, klass, gather, position)
            return
        self.aim()
        leg: MarkLeg = MarkLeg(raw, klass, gather, position, self)
        leg.send()


@cython.cclass
class MarkLeg(RoomLeg):
    """Answers when nothing is under way any more. outcomes: by side, a reply or a BackendError; None: not asked."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: MarkLane
    ) -> None:
        super().__init__(raw, klass, gather, position, route)
        self.open = 0
        self.outcomes: list[bytes | BackendError | None] = [None, None]

    @cython.ccall
    def resend(self) -> None:
        self.send()

    @cython.cfunc
    def send(self) -> None:
        """To the one that serves and, unless that is known to be down, to its peer."""
        pair: Pair = self.route.pair
        side: cython.Py_ssize_t = pair.active
        lane: Lane
        self.outcomes = [None, None]
        self.open = 1
        if pair.state(1 - side) & DOWN:
            pair.miss(1 - side)
        else:
            self.open = 2
            lane = self.route.lanes[1 - side]
            lane.submit(self.raw, self.klass, self, 1 - side)
        lane = self.route.lanes[side]
        lane.submit(self.raw, self.klass, self, side)

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        self.note(position, reply)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        self.route.pair.suspect(position, error)
        self.note(position, error)

    @cython.cfunc
    def note(self, side: cython.Py_ssize_t, outcome: bytes | BackendError) -> None:
        self.outcomes[side] = outcome
        self.open -= 1
        if self.open == 0:
            self.finish()

    @cython.cfunc
    def finish(self) -> None:
        """Both have spoken. Which of them serves may have changed in the meantime."""
        pair: Pair = self.route.pair
        side: cython.Py_ssize_t = pair.active
        own = self.outcomes[side]
        spare = self.outcomes[1 - side]
        if spare is not None and (isinstance(spare, BackendError) or self.route.is_error(spare)):
            pair.miss(1 - side)
        if own is not None and not isinstance(own, BackendError):
            self.answer(own)
            return
        safe: cython.bint = own is None or not own.sent or self.klass <= IDEMPOTENT
        if self.again or not safe:
            self.give_up(spare if own is None else own)
            return
        self.again = True
        if own is not None and pair.can_take_over(1 - side):
            pair.waiting.append(self.resend)
            pair.wake()
        elif own is None:
            self.send()
        else:
            self.give_up(own)
