"""A pair in the place of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.node import Node
    from hyper_proxy.conn_pool.rooms.lane import RoomLane
    from hyper_proxy.conn_pool.rooms.pair import Pair


class RoomTarget:
    """make: from the lanes of both nodes to the one that hands requests on."""

    def __init__(self, pair: Pair, make: Callable[[Sequence[Lane]], RoomLane]) -> None:
        self.pair = pair
        self.make = make
        self.made: dict[tuple[Greeting, int], RoomLane] = {}

    @property
    def home(self) -> Node:
        """The node that serves."""
        return self.pair.nodes[self.pair.active]

    def open_lane(self) -> Lane | None:
        """One of the node that serves: what is sent there goes to no other."""
        return self.home.open_lane()

    def lane(self, greeting: Greeting, index: int = 0) -> RoomLane:
        """The lane for this greeting."""
        lane = self.made.get((greeting, index))
        if lane is None:
            lanes = [node.lane(greeting, index) for node in self.pair.nodes]
            lane = self.made[greeting, index] = self.make(lanes)
        return lane
