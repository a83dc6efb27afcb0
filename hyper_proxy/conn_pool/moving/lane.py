"""The lanes of a shard whose keys move: what a request needs is handed over before it is sent, in order of arrival.

The old home hands keys over in one step of its own (for redis: MIGRATE), and says when it has none. So nobody writes a
key at its new home before that, and nobody at the old one after the moment in which the move began: a key is always
whole, in one of the two places. One such question is under way per lane, for the keys of all requests that wait
(asking.py): a new home that does not answer then keeps the old one from its other work for one deadline, and not for
one a request.

Clients submit; all else here runs in the hub, since it may wake other clients.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gevent import get_hub

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.moving.asking import MOST_KEYS, Asking
from hyper_proxy.conn_pool.moving.schedule import homes_at
from hyper_proxy.conn_pool.room import Room
from hyper_proxy.conn_pool.routes.route import RouteLane

if TYPE_CHECKING:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.moving.way import Way

BEGIN_ANEW = "its keys move to another server now: begin anew"


class Turn(NamedTuple):
    """A request that waits, and who waits for its answer."""

    raw: bytes | bytearray
    klass: int
    gather: Gather | None
    position: int


class MoveLane(RouteLane):
    """lanes: to the old home and to the new one, with the same greeting."""

    def __init__(self, lanes: Sequence[Lane], way: Way, greeting: Greeting) -> None:
        super().__init__(lanes, way.setting)
        self.asked = list(lanes)  # for keys; clients' requests go to `lanes`
        self.way = way
        self.hello = greeting
        self.turns: deque[Turn] = deque()
        self.waiting_bytes = 0
        self.asking: Asking | None = None
        self.space = Room()
        self.due = False  # will `_go_on` be called?
        self.walking = False
        self.loop_of_hub = get_hub().loop
        self.most_bytes = self.node.max_pending_bytes

    def is_full(self, klass: int) -> bool:
        """Has one of the homes too much to take, or wait too many here?"""
        return self.waiting_bytes > self.most_bytes or any(lane.is_full(klass) for lane in self.lanes)

    def wait_for_room(self, klass: int) -> BackendError | None:
        """Wait for a home that is full, or until what waits here has gone on."""
        full = next((lane for lane in self.lanes if lane.is_full(klass)), None)
        if full is not None:
            return full.wait_for_room(klass)
        if self.waiting_bytes <= self.most_bytes or self.space.wait(self.way.schedule.hold_left() + self.node.queue_s):
            return None
        return self.node.error("busy", f"more than {self.most_bytes} bytes wait for their keys to be moved")

    def submit(self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int) -> None:
        """To the old home until the move begins; then behind everything that waits here."""
        if not self.turns and self.asking is None and self.way.schedule.stage() == 0:
            self.lanes[0].submit(raw, klass, gather, position)
            return
        self.turns.append(Turn(raw, klass, gather, position))
        self.waiting_bytes += len(raw)
        self._soon()

    def _soon(self) -> None:
        if not self.due:
            self.due = True
            self.loop_of_hub.run_callback(self._go_on)

    def _go_on(self) -> None:
        self.due = False
        if self.walking:
            return
        self.walking = True
        try:
            while self.turns and self.asking is None:
                stage = self.way.schedule.stage()
                if stage is None:
                    self.way.wake_after_hold(self._go_on)
                    return
                self._step(stage)
        finally:
            self.walking = False

    def _step(self, stage: int) -> None:
        """The first requests that wait: ask for their keys, or hand on what needs none."""
        if stage == 0:
            self._hand_on([self._next()], 0)
            return
        group: list[tuple[Turn, list[bytes]]] = []
        count = 0
        while self.turns and count < MOST_KEYS:
            turn = self._next()
            try:
                keys = self.way.mover.keys_of(bytes(turn.raw))
            except ClientError as fault:
                self._refuse(turn, self.node.error("moving", str(fault)))
            else:
                group.append((turn, keys))
                count += len(keys)
        if count:
            self.asking = Asking(self, group, stage)
            self.asking.ask()
        else:
            self._hand_on([turn for turn, _ in group], homes_at(stage)[1])

    def _next(self) -> Turn:
        turn = self.turns.popleft()
        self.waiting_bytes -= len(turn.raw)
        if self.space and self.waiting_bytes <= self.most_bytes:
            self.space.open()
        return turn

    def _hand_on(self, group: list[Turn], home: int) -> None:
        lane = self.lanes[home]
        for turn in group:
            lane.submit(turn.raw, turn.klass, turn.gather, turn.position)

    def _refuse(self, turn: Turn, error: BackendError) -> None:
        if turn.gather is not None:
            turn.gather.fail(turn.position, error)

    def asked_all(self, asking: Asking) -> None:
        """The keys of a group are where they belong, but for those that could not be handed over: requests for these
        are not sent."""
        self.asking = None
        for turn, keys in asking.group:
            error = next((asking.errors[key] for key in keys if key in asking.errors), None)
            if error is None:
                self._hand_on([turn], asking.home)
            else:
                self._refuse(turn, error)
        self._soon()

    def put_back(self, asking: Asking) -> None:
        """A hold has begun before all was known: these requests are the first ones after it."""
        self.asking = None
        self.turns.extendleft(turn for turn, _ in reversed(asking.group))
        self.waiting_bytes += sum(len(turn.raw) for turn, _ in asking.group)
        self._soon()


class NoLane(RouteLane):
    """In the place of a lane to the other home, for a client that has one of its own to `inner`'s alone: the lane that
    all clients share must never hear of its MULTI."""

    def __init__(self, inner: Lane, way: Way) -> None:
        super().__init__([inner, inner], way.setting)

    def submit(self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int) -> None:
        """Refuse it."""
        if gather is not None:
            gather.fail(position, self.node.error("moving", BEGIN_ANEW))


class OwnMoveLane(MoveLane):
    """The lane of one client alone to one of the homes, `inner`; keys are asked for on a lane of all clients."""

    def __init__(self, lanes: Sequence[Lane], way: Way, greeting: Greeting, inner: Lane, home: int) -> None:
        own: list[Lane] = [NoLane(inner, way), NoLane(inner, way)]
        own[home] = inner
        super().__init__(own, way, greeting)
        self.asked = list(lanes)
        self.inner = inner

    def abandon(self) -> None:
        """Its client is gone."""
        self.inner.abandon()
