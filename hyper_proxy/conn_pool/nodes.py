"""The nodes of one level, by shard; a reload takes over those that have not changed, with their connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hyper_proxy.config.model import Backoff, Level, Server, Timeout
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.replies import ReplyParser

Identity = tuple[Server, Timeout, Backoff, str, str, int, int, str, str]


def identity(level: Level, server: Server) -> Identity:
    """What must be equal for a node to be the same one."""
    own = (level.timeout, level.backoff, level.username, level.password, level.db, level.max_pending_bytes)
    return (replace(server, weight=1), *own, level.sentinel_username, level.sentinel_password)


class Nodes:
    """A sequence of nodes in the order of the level's servers: the index is the shard.

    shared: nodes of other pools of the level; a server that stands in two of them is one node.
    """

    def __init__(
        self,
        instance: str,
        level: Level,
        parser: type[ReplyParser],
        greeting: Greeting,
        previous: Nodes | None,
        shared: Mapping[Identity, Node] | None = None,
    ) -> None:
        kept = {**(previous.by_identity if previous else {}), **(shared or {})}
        before = {node.label: node for node in previous} if previous else {}
        self.by_identity: dict[Identity, Node] = {}
        self._all: list[Node] = []
        for server in level.servers:
            key = identity(level, server)
            node = kept.get(key) or Node(instance, level, server, parser, greeting, before.get(server.label))
            node.name.ttl_s = level.dns_ttl_s
            self.by_identity[key] = node
            self._all.append(node)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, shard: int) -> Node:
        return self._all[shard]

    def close(self, successor: Iterable[Node] | None) -> None:
        """Close the nodes that the successor does not have."""
        kept = set(successor or ())
        heirs = {node.label: node for node in kept}
        for node in self.by_identity.values():
            if node not in kept:
                node.close(heirs.get(node.label))
