"""Writes to both rooms: the answer is that of the node that serves, and what the other has missed is kept for it.

A client has its answer when its write is done where it must be: at the node that serves, and at its peer or in the
journal of what that has missed. Where both say something else, the peer has another value than it should: that counts
as missed, too. So it does not matter which commands always come to the same result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gevent import get_hub

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.rooms.copying import Copying
from hyper_proxy.conn_pool.rooms.lane import RoomLane, RoomLeg
from hyper_proxy.conn_pool.rooms.overlap import cell_of
from hyper_proxy.conn_pool.rooms.pair import BEHIND, CATCHING_UP, DOWN
from hyper_proxy.conn_pool.routes.speech import EVERYTHING
from hyper_proxy.stats.classes import IDEMPOTENT, READ

if TYPE_CHECKING:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane

UNTOLD = "this command is not served where writes go to two rooms"
HELD_S = 0.001
"""So often is looked whether a key that is being copied may be written."""


class MirrorLane(RoomLane):
    """copying: keeps what a side has missed, and copies it.

    While a write is parked, because its key is just being copied, whatever comes after it stands behind it: the
    requests of a client stay in their order.
    """

    def __init__(self, lanes: Sequence[Lane], copying: Copying) -> None:
        super().__init__(lanes, copying.pair, copying.speech.is_error)
        self.copying = copying
        self.db: int = getattr(lanes[0].greeting, "db", 0)
        self.parked: deque[Callable[[], bool]] = deque()
        self.timer: Any = None

    def submit(self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int) -> None:
        if klass == READ:
            if not self.parked:
                super().submit(raw, klass, gather, position)
                return
            leg = RoomLeg(raw, klass, gather, position, self)
            self.in_turn(lambda: leg.resend() or True)
            return
        keys = self.copying.speech.keys_written(bytes(raw))
        if keys is not None:
            self.in_turn(MirrorLeg(raw, klass, gather, position, self, keys).begin)
        elif gather is not None:
            gather.fail(position, self.pair.nodes[self.pair.active].error("room", UNTOLD))

    def in_turn(self, begin: Callable[[], bool]) -> None:
        """Begin now, if nobody is parked and it may; else as soon as it may."""
        if self.parked or not begin():
            self.parked.append(begin)
            if self.timer is None:
                self.timer = get_hub().loop.timer(HELD_S, HELD_S)
                self.timer.start(self._go_on)

    def _go_on(self) -> None:
        while self.parked and self.parked[0]():
            self.parked.popleft()
        if not self.parked:
            self.timer.close()
            self.timer = None


class MirrorLeg(RoomLeg):
    """One write. outcomes: by side, a reply or a BackendError; None: not asked, and the keys are in its journal."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: MirrorLane,
        keys: Sequence[bytes],
    ) -> None:  # fmt: skip
        super().__init__(raw, klass, gather, position, route)
        self.mirror = route
        self.copying = route.copying
        self.pair = route.pair
        self.empties = EVERYTHING in keys
        self.missed = [(route.db, key) for key in keys]
        self.cells = [cell_of(*one) for one in self.missed]
        self.outcomes: list[bytes | BackendError | None] = [None, None]
        self.open = 0
        self.crowded = False  # did another worker write one of its keys at the same time?
        self.others = 0
        self.before = 0  # the state of the peer when it began
        self.tried = False
        self.copying.under_way += 1

    def begin(self) -> bool:
        """Send it, unless one of its keys is being copied: was it?"""
        overlap, pair = self.copying.overlap, self.pair
        if not overlap.enter(self.cells):
            return False
        side = pair.active
        try:
            self.crowded, self.others = overlap.others(self.cells)
            self._tell_peer(1 - side)
        except BaseException:
            overlap.leave(self.cells)  # else nobody would ever copy what has one of them
            raise
        self.mirror.lanes[side].submit(self.raw, self.klass, self, side)
        return True

    def _tell_peer(self, other: int) -> None:
        """Send it to this side, too, or keep that it has missed it."""
        pair, peer = self.pair, self.mirror.lanes[other]
        if self.empties:
            pair.lose(other, "its peer is emptied by a command, and it will be copied")
        self.before = pair.state(other)
        gets = not self.before or self.before & (CATCHING_UP | DOWN) == CATCHING_UP
        self.outcomes = [None, None]
        self.open = 1
        if gets and not peer.is_full(self.klass):
            self.open = 2
            peer.submit(self.raw, self.klass, self, other)
        else:
            self.copying.keep(other, self.missed)

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        self._note(position, reply)

    def fail(self, position: int, error: BackendError) -> None:
        self.pair.suspect(position, error)
        self._note(position, error)

    def _note(self, side: int, outcome: bytes | BackendError) -> None:
        self.outcomes[side] = outcome
        self.open -= 1
        if self.open:
            return
        self.crowded = self.crowded or self.copying.overlap.others(self.cells)[1] != self.others
        self.copying.overlap.leave(self.cells)
        serves = self.pair.active
        if isinstance(self.outcomes[serves], BackendError) and self.pair.can_take_over(1 - serves):
            self.pair.waiting.append(self._decide)  # is it dead? then the peer's answer counts
            self.pair.wake()
        else:
            self._decide()

    def _decide(self) -> None:
        """It is decided who serves: answer, or begin once more."""
        if not self._is_tried_again():
            self.copying.under_way -= 1

    def _is_tried_again(self) -> bool:
        side = self.pair.active
        own, spare = self.outcomes[side], self.outcomes[1 - side]
        if own is not None and not isinstance(own, BackendError):
            if spare is not None:
                self._compare(1 - side, own, spare)
            self.answer(own)
            return False
        if spare is not None:
            self.copying.keep(1 - side, self.missed)  # nobody knows what it has done
        repeatable = self.klass <= IDEMPOTENT or (own is not None and not own.sent)
        if repeatable and not self.tried:
            self.tried = True
            self.mirror.in_turn(self.begin)
            return True
        if own is not None:
            self.give_up(own)
        else:
            self.give_up(self.pair.nodes[side].error("room", "another room began to serve while this was done"))
        return False

    def _compare(self, other: int, own: bytes, spare: bytes | BackendError) -> None:
        """The peer has done the same, or it is kept that it has not."""
        state = self.pair.state(other)
        fell_behind = state != self.before and state & (BEHIND | CATCHING_UP) == BEHIND
        if fell_behind or isinstance(spare, BackendError) or (spare != own and not self.crowded):
            self.copying.keep(other, self.missed)
        elif self.crowded:
            self.copying.doubt(self.missed)
