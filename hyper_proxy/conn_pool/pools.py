"""The servers of one level: its pools, and what stands at each shard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hyper_proxy.config.model import MAIN, Level, Route
from hyper_proxy.conn_pool.node import Greeting, Node
from hyper_proxy.conn_pool.nodes import Nodes
from hyper_proxy.conn_pool.replies import ReplyParser
from hyper_proxy.conn_pool.routes.route import RouteTarget
from hyper_proxy.conn_pool.routes.table import PRODUCTS
from hyper_proxy.conn_pool.target import Target


class Pools:
    """A sequence of all nodes. `previous`: those of the configuration before; unchanged ones keep their connections.

    targets  by shard of the level's placement (hyper_proxy/hashing/routes/build.py)
    homes    nodes that together have every key: where to count and walk them
    """

    def __init__(
        self, instance: str, level: Level, parser: type[ReplyParser], greeting: Greeting, previous: Pools | None
    ) -> None:
        before: dict[str, Nodes] = previous.by_name if previous else {}
        self.by_name: dict[str, Nodes] = {
            name: Nodes(instance, one, parser, greeting, before.get(name)) for name, one in level.pool_levels().items()
        }
        route = level.route or Route("pool", pool=MAIN)
        self.targets: list[Target] = self._targets(route)
        self.homes = self._homes(route)
        self.all = [node for nodes in self.by_name.values() for node in nodes]

    def _targets(self, route: Route) -> list[Target]:
        """In the order of config/routes.py `spots`."""
        if route.kind == "pool":
            return list(self.by_name[route.pool])
        children = [self._targets(child) for child in route.children]
        if route.kind in PRODUCTS:
            make = PRODUCTS[route.kind]
            return [RouteTarget(route, combined, make) for combined in product(*children)]
        return [target for child in children for target in child]

    def _homes(self, route: Route) -> list[Node]:
        if route.kind == "pool":
            return list(self.by_name[route.pool])
        served = route.children[:1] if route.kind in PRODUCTS else route.children
        return list(dict.fromkeys(node for child in served for node in self._homes(child)))

    def __iter__(self) -> Iterator[Node]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def close(self, successor: Pools | None) -> None:
        """Close the nodes that the successor does not have."""
        for name, nodes in self.by_name.items():
            nodes.close(successor.by_name.get(name) if successor else None)
