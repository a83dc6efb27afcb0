"""The way of the keys of one shard: from their old home to their new one, or back."""

from __future__ import annotations

from collections.abc import Callable
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


class Way:
    """nodes: the old home and the new one. Where one can't reach the other, it is not asked to for a while."""

    def __init__(self, setting: Setting, nodes: tuple[Node, Node], schedule: Schedule, mover: Mover) -> None:
        self.setting = setting
        self.nodes = nodes
        self.schedule = schedule
        self.mover = mover
        self.pause = Pause(nodes[OLD].backoff)
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

    def refusal(self) -> BackendError | None:
        """Why nothing is handed over just now."""
        if self.pause.until <= monotonic():
            return None
        return self.nodes[OLD].error("backoff", f"{self.pause.reason}; not tried again yet")

    def works(self) -> None:
        """Keys were handed over, or there were none."""
        if self.pause.failures:
            self.pause = Pause(self.nodes[OLD].backoff)

    def fault(self, source: int, home: int, outcome: Outcome, reply: bytes) -> BackendError:
        """For requests whose keys the old home could not hand over."""
        said = reply[1:SHOWN_BYTES].decode(errors="replace").strip()
        detail = f"the request was not sent: its keys could not be moved from here to {self.nodes[home].where}: {said}"
        if outcome is Outcome.UNREACHABLE:
            self.pause.lengthen(detail)
        return self.nodes[source].error("moving", detail)

    def silent(self, source: int, home: int, error: BackendError) -> BackendError:
        """For those whose keys could not be asked for. They were not sent, whatever became of the question."""
        node = self.nodes[source]
        why = str(error).partition("': ")[2].partition("': ")[2] or str(error)
        detail = f"the request was not sent: its keys must first be moved from here to {self.nodes[home].where}: {why}"
        return BackendError(node.instance, node.where, error.kind, detail)


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
