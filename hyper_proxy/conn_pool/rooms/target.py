"""A pair in the place of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hyper_proxy.conn_pool.rooms.lane import RoomLane
from hyper_proxy.conn_pool.target import Junction

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.node import Node
    from hyper_proxy.conn_pool.rooms.pair import Pair


class RoomTarget(Junction[RoomLane]):
    """make: from the lanes of both nodes to the one that hands requests on."""

    def __init__(self, pair: Pair, make: Callable[[Sequence[Lane]], RoomLane]) -> None:
        super().__init__()
        self.pair = pair
        self.make = make

    @property
    def home(self) -> Node:
        """The node that serves."""
        return self.pair.nodes[self.pair.active]

    def open_lanes(self) -> list[Lane]:
        """One of the node that serves: what is sent there goes to no other."""
        return self.home.open_lanes()

    def make_lane(self, greeting: Greeting, index: int) -> RoomLane:
        return self.make([node.lane(greeting, index) for node in self.pair.nodes])
