"""The way of the keys of one shard: from their old home to their new one, or back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import gevent
from gevent import get_hub

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.moving.lane import MoveLane, OwnMoveLane
from hyper_proxy.conn_pool.moving.mover import Mover, Outcome
from hyper_proxy.conn_pool.moving.schedule import OLD, Schedule, homes_at
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.pause import Pause
from hyper_proxy.conn_pool.routes.route import Setting
from hyper_proxy.conn_pool.target import Junction

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane

SHOWN_BYTES = 200  # of a server's refusal
OWN_S = 2.0  # for the answer to a question of its own; no client's waits so long
MOST_BROKEN = 3  # keys one after the other with which the talk broke off: then it is for none of them
MOST_SUSPECTS = 1024  # which are remembered


class Way:
    """nodes: the old home and the new one. Where one can't reach the other, it is not asked to for a while."""

    def __init__(self, setting: Setting, nodes: tuple[Node, Node], schedule: Schedule, mover: Mover) -> None:
        self.setting = setting
        self.nodes = nodes
        self.schedule = schedule
        self.mover = mover
        self.pause = Pause(nodes[OLD].backoff)
        self.suspects: dict[bytes, Pause] = {}  # keys that could not be handed over
        self.broken = 0  # of them, since one was handed over, with which the talk broke off
        self.held: dict[Callable[[], None], None] = {}
        self.timer: Any = None

    def wake_after_hold(self, call: Callable[[], None]) -> None:
        """Call it when the hold is over."""
        self.held[call] = None
        if self.timer is None:
            self.timer = get_hub().loop.timer(self.schedule.hold_left() + 0.001)
            self.timer.start(self._wake)

    def _wake(self) -> None:
        self.timer.close()
        self.timer = None
        held, self.held = self.held, {}
        for call in held:
            call()

    def refusal(self, keys: Sequence[bytes], late: bool) -> str:
        """Why these are not handed over just now; "" where they are. late: no time is left for suspects."""
        own = self._suspect_of(keys)
        left = self.schedule.next_hold()
        late = late or (left is not None and left < OWN_S)
        for pause in (self.pause, own):
            if pause is not None and (pause.until > monotonic() or (pause is own and late)):
                return f"{pause.reason}; not tried again yet"
        return ""

    def works(self, keys: Sequence[bytes], outcome: Outcome) -> None:
        """Some of these keys were handed over, or there were none, which says nothing of the other home."""
        if outcome is Outcome.DONE:
            self.broken = 0
            if self.pause.failures:
                self.pause = Pause(self.nodes[OLD].backoff)
        if self.suspects:
            for key in keys:
                self.suspects.pop(key, None)

    def detail(self, home: int, reply: bytes) -> str:
        """Why requests are not sent whose keys the old home could not hand over; reply: what it has said."""
        said = reply[1:SHOWN_BYTES].decode(errors="replace").strip()
        return f"the request was not sent: its keys could not be moved from here to {self.nodes[home].where}: {said}"

    def blame(self, key: bytes, detail: str, broken: bool) -> None:
        """This key could not be handed over, asked for alone. broken: the talk broke off, though the new home is well.

        Where that happens with several keys, and none is handed over meanwhile, it is for what lies between the homes.
        """
        if broken and key not in self.suspects:
            self.broken += 1
            if self.broken >= MOST_BROKEN:
                self.pause.lengthen(detail)
        self.suspect(key, detail)

    def suspect(self, key: bytes, detail: str) -> None:
        """Ask for it alone from now on, and not before a pause is over, which is longer each time."""
        pause = self.suspects.pop(key, None) or Pause(self.nodes[OLD].backoff)
        pause.lengthen(detail)
        self.suspects[key] = pause
        if len(self.suspects) > MOST_SUSPECTS:
            del self.suspects[next(iter(self.suspects))]

    def silence(self, home: int, error: BackendError) -> str:
        """Why requests are not sent where a home has not answered, whatever became of the question."""
        why = str(error).partition("': ")[2]
        return f"the request was not sent: its keys must first be moved from here to {self.nodes[home].where}: {why}"

    def failures(self, keys: Sequence[bytes]) -> int:
        """How often a key that is suspected was asked for in vain: it is given more time. 0 for others."""
        own = self._suspect_of(keys)
        return own.failures if own is not None else 0

    def _suspect_of(self, keys: Sequence[bytes]) -> Pause | None:
        return self.suspects.get(keys[0]) if len(keys) == 1 else None

    def own_lane(self, source: int, greeting: Greeting) -> OwnLane:
        """For a question that may take longer."""
        return OwnLane(self.nodes[source], greeting)


class OwnLane:
    """A lane for one question to which the answer may come later than any client's."""

    def __init__(self, node: Node, greeting: Greeting) -> None:
        self.lane = node.private_lane(greeting)
        self.lane.be_patient(True)
        self.timer = get_hub().loop.timer(OWN_S)
        self.timer.start(self.lane.abort, "timeout", f"no answer within {round(OWN_S * 1000)} ms")

    def close(self) -> None:
        """It is answered, or failed."""
        self.timer.close()
        self.lane.abandon()


class MoveTarget(Junction[MoveLane]):
    """In the place of a node: what stands at a shard whose keys move."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way

    @property
    def home(self) -> Node:
        """Where the keys are served; in a hold, where they will be."""
        stage = self.way.schedule.ahead()
        return self.way.nodes[homes_at(stage)[1] if stage else OLD]

    def make_lane(self, greeting: Greeting, index: int) -> MoveLane:
        return MoveLane([node.lane(greeting, index) for node in self.way.nodes], self.way, greeting)

    def own(self, borrow: Callable[[Node], Lane], greeting: Greeting) -> Lane:
        """What one client alone talks over, on a lane of its own that `borrow` opens: the keys are moved first.

        Waits while a hold is on.
        """
        while left := self.way.schedule.hold_left():
            gevent.sleep(left + 0.001)
        stage = self.way.schedule.ahead()  # asked once: with each question another moment may have come
        if stage == 0:
            return borrow(self.way.nodes[OLD])
        home = homes_at(stage)[1]
        lanes = [node.lane(greeting) for node in self.way.nodes]
        return OwnMoveLane(lanes, self.way, greeting, borrow(self.way.nodes[home]), home)
