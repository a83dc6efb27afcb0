"""What stands at a shard: a node, or a route that leads to several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.node import Node


class Target(Protocol):
    """Whoever has a key's shard hands the request to a lane of this."""

    @property
    def home(self) -> Node:
        """The server for what one client alone talks about with one server: transactions, blocking commands."""
        ...

    def lane(self, greeting: Greeting, index: int = 0) -> Lane:
        """The shared lane number `index` for this greeting."""
        ...

    def open_lane(self) -> Lane | None:
        """A shared lane that would send at once, if there is one."""
        ...
