"""The lanes of a shard whose keys move: what a request needs is handed over before it is sent, in order of arrival.

The old home hands keys over in one step of its own (for redis: MIGRATE), and says when it has none. So nobody writes a
key at its new home before that, and nobody at the old one after the moment in which the move began: a key is always
whole, in one of the two places. One such question is under way per lane, for the keys of all requests that wait: a new
home that does not answer then keeps the old one from its other work for one deadline, and not for one a request.

Clients submit; all else here runs in the hub, since it may wake other clients.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gevent import get_hub

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.common.gather import Gather
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.moving.mover import Outcome
from hyper_proxy.conn_pool.moving.schedule import homes_at
from hyper_proxy.conn_pool.room import Room
from hyper_proxy.conn_pool.routes.route import RouteLane
from hyper_proxy.stats.classes import WRITE

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.moving.way import Way

MOST_KEYS = 64  # handed over at once: a server does nothing else meanwhile
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
        source, home = homes_at(stage)
        group: list[Turn] = []
        keys: dict[bytes, None] = {}
        while self.turns and len(keys) < MOST_KEYS:
            turn = self._next()
            try:
                keys.update(dict.fromkeys(self.way.mover.keys_of(bytes(turn.raw))))
            except ClientError as fault:
                self._refuse([turn], self.node.error("moving", str(fault)))
            else:
                group.append(turn)
        if not keys:
            self._hand_on(group, home)
            return
        refusal = self.way.refusal()
        if refusal is not None:
            self._refuse(group, refusal)
            return
        self.asking = Asking(self, group, list(keys), source, home)
        self.asking.ask()

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

    def _refuse(self, group: list[Turn], error: BackendError) -> None:
        for turn in group:
            if turn.gather is not None:
                turn.gather.fail(turn.position, error)

    def moved(self, asking: Asking) -> None:
        """The keys of a group are where they belong."""
        self.asking = None
        self._hand_on(asking.group, asking.home)
        self._soon()

    def not_moved(self, asking: Asking, error: BackendError) -> None:
        """They could not be handed over: the requests are not sent."""
        self.asking = None
        self._refuse(asking.group, error)
        self._soon()


class Asking(Gather):
    """A question for keys under way, in the place of whoever waits for the answer.

    The first time nothing at the new home is replaced: should the question arrive twice, the second one late, it must
    not put an old value in the place of a new one. Where there is something it is what the old home has handed over
    before without hearing of it, or was left there by nobody knows whom; in both cases the old home is right.
    """

    def __init__(self, lane: MoveLane, group: list[Turn], keys: list[bytes], source: int, home: int) -> None:
        # Not Gather's: no greenlet waits here.
        self.lane = lane
        self.group = group
        self.keys = keys
        self.source = source
        self.home = home
        self.replace = False

    def ask(self) -> None:
        """Send it."""
        way = self.lane.way
        raw = way.mover.hand_over(way.nodes[self.home].server, self.lane.hello, self.keys, self.replace)
        way.nodes[self.source].counts.hand_overs += 1
        self.lane.asked[self.source].submit(raw, WRITE, self, 0)

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        """What the old home has said."""
        way = self.lane.way
        assert isinstance(reply, bytes)
        outcome = way.mover.outcome(reply)
        if outcome in (Outcome.DONE, Outcome.NONE):
            way.works()
            way.nodes[self.source].counts.handed_over += outcome is Outcome.DONE
            self.lane.moved(self)
        elif outcome is Outcome.OCCUPIED and not self.replace:
            self.replace = True
            self.ask()
        else:
            self.lane.not_moved(self, way.fault(self.source, self.home, outcome, reply))

    def fail(self, position: int, error: BackendError) -> None:
        """It has said nothing."""
        way = self.lane.way
        self.lane.not_moved(self, way.silent(self.source, self.home, error))


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
