"""What stands at a shard: a node, or what leads to several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.node import Node

L = TypeVar("L", bound="Lane")


class Target(Protocol):
    """Whoever has a key's shard hands the request to a lane of this."""

    @property
    def home(self) -> Node:
        """The server for what one client alone talks about with one server: transactions, blocking commands."""
        ...

    def lane(self, greeting: Greeting, index: int = 0) -> Lane:
        """The shared lane number `index` for this greeting."""
        ...

    @property
    def places(self) -> list[Target]:
        """Whoever may have a copy, of a level above another: a mark must reach each of them."""
        ...

    def open_lanes(self) -> list[Lane]:
        """Those to where a level above another keeps a copy, as far as they would send at once."""
        ...


class Junction(ABC, Generic[L]):
    """A target in the place of a node: its lanes hand requests to those of others."""

    def __init__(self) -> None:
        self.made: dict[tuple[Greeting, int], L] = {}

    @property
    @abstractmethod
    def home(self) -> Node:
        """As that of a Target."""

    @abstractmethod
    def make_lane(self, greeting: Greeting, index: int) -> L:
        """A new one, for the first who asks for it."""

    def lane(self, greeting: Greeting, index: int = 0) -> L:
        """The shared lane number `index` for this greeting."""
        lane = self.made.get((greeting, index))
        if lane is None:
            lane = self.made[greeting, index] = self.make_lane(greeting, index)
        return lane

    @property
    def places(self) -> list[Target]:
        """As those of a Target: this one."""
        return [self]

    def open_lanes(self) -> list[Lane]:
        """One whose home is connected."""
        return [self.lane(lane.greeting) for lane in self.home.open_lanes()]
