"""The servers of one level: its pools, and what stands at each shard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.addresses import ROOMS
from hyper_proxy.config.model import MAIN, Level, Route
from hyper_proxy.config.routes import home_pools
from hyper_proxy.conn_pool.moving.schedule import Schedule
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.nodes import Nodes
from hyper_proxy.conn_pool.rooms.rooms import Rooms, second_room
from hyper_proxy.conn_pool.routes.route import RouteTarget, Setting
from hyper_proxy.conn_pool.routes.table import PRODUCTS
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue


class Pools:
    """A sequence of all nodes. `previous`: those of the configuration before; unchanged ones keep their connections.

    targets  by shard of the level's placement (hyper_proxy/hashing/routes/build.py)
    homes    what has every key, all together: where to count and walk them
    every    all servers, or the pairs that they are: where to send what is for each of them
    schedule when keys move from pool to pool, where they do
    """

    schedule: Schedule | None = None

    def __init__(self, instance: str, level: Level, tongue: Tongue, previous: Pools | None) -> None:
        self.speech = tongue.speech
        parser, greeting = tongue.parser, tongue.greeting
        before: dict[str, Nodes] = previous.by_name if previous else {}
        shared = {key: node for nodes in before.values() for key, node in nodes.by_identity.items()}
        self.by_name: dict[str, Nodes] = {}
        self.rooms: dict[str, Rooms] = {}
        known = [node.server.address for node in previous] if previous else []
        rooms_before = (previous.rooms.values() if previous else (), known)
        for name, one in level.pool_levels().items():
            first = self.by_name[name] = Nodes(instance, one, parser, greeting, before.get(name), shared)
            shared.update(first.by_identity)
            if one.peers:
                peers = name + ROOMS
                second = Nodes(instance, second_room(one), parser, greeting, before.get(peers))
                self.by_name[peers] = second
                try:
                    self.rooms[name] = Rooms(instance, one, greeting, tongue.speech, first, second, *rooms_before)
                except HyperProxyError:
                    self.close(previous)  # those of other pools, which were built before
                    raise
        route = level.route or Route("pool", pool=MAIN)
        self.targets: list[Target] = self._targets(route)
        self.homes: list[Target] = list(
            dict.fromkeys(target for name in home_pools(route) for target in self._pool(name))
        )
        self.every = list(dict.fromkeys(target for name in level.pool_levels() for target in self._pool(name)))
        self.all = list(dict.fromkeys(node for nodes in self.by_name.values() for node in nodes))

    def _targets(self, route: Route) -> list[Target]:
        """In the order of config/routes.py `spots`."""
        if route.kind == "pool":
            return self._pool(route.pool)
        children = [self._targets(child) for child in route.children]
        if route.kind in PRODUCTS:
            make = PRODUCTS[route.kind]
            setting = Setting(route, self.speech)
            return [RouteTarget(setting, combined, make) for combined in product(*children)]
        return [target for child in children for target in child]

    def _pool(self, name: str) -> list[Target]:
        """By shard of the pool."""
        return [*self.rooms[name].targets] if name in self.rooms else [*self.by_name[name]]

    def receivers(self, name: bytes, read: bool) -> list[Target]:
        """Who gets a command that is for all servers. Raises ClientError when it can't be served."""
        return self.homes if read else self.every

    def __iter__(self) -> Iterator[Node]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def close(self, successor: Pools | None) -> None:
        """Close the nodes that the successor does not have."""
        for rooms in self.rooms.values():
            rooms.stop()
        for nodes in self.by_name.values():
            nodes.close(successor)
