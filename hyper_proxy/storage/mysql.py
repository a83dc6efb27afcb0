"""A table of MySQL or MariaDB as a key space: its servers as shards, each a reader and a writer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from hyper_proxy.config.model import Level, Server
from hyper_proxy.conn_pool.sql_node import SqlNode
from hyper_proxy.storage.mysql_shard import MysqlShard
from hyper_proxy.storage.sharded import Sharded


class SqlNodes:
    """The readers, then those writers that are other servers. What has not changed is taken over from `previous`."""

    def __init__(self, instance: str, level: Level, previous: SqlNodes | None) -> None:
        kept = previous.by_identity if previous else {}
        before = {node.label: node for node in previous} if previous else {}
        self.by_identity: dict[Hashable, SqlNode] = {}
        for server in (*level.servers, *level.writers):
            key = _identity(level, server)
            if key not in self.by_identity:
                node = kept.get(key) or SqlNode(instance, level, server, before.get(server.label))
                node.name.ttl_s = level.dns_ttl_s
                self.by_identity[key] = node

    def __iter__(self) -> Iterator[SqlNode]:
        return iter(self.by_identity.values())

    def __len__(self) -> int:
        return len(self.by_identity)

    def of(self, level: Level, server: Server) -> SqlNode:
        """The node of a server."""
        return self.by_identity[_identity(level, server)]

    def close(self, successor: SqlNodes | None) -> None:
        """Close the nodes that the successor does not have."""
        kept = successor.by_identity if successor else {}
        heirs = {node.label: node for node in successor} if successor else {}
        for key, node in self.by_identity.items():
            if key not in kept:
                node.close(heirs[node.label].out if node.label in heirs else "")


def _identity(level: Level, server: Server) -> Hashable:
    """What must be equal for a node to be the same one."""
    user = (level.username, level.password, level.database, level.max_connections)
    return (replace(server, weight=1), level.timeout, level.backoff, *user)


class MysqlStorage(Sharded):
    """The key space of one level."""

    kind = "mysql"
    forwards = False  # no front's bytes are sent on as they are

    def __init__(self, instance: str, level: Level, previous: MysqlStorage | None = None) -> None:
        table = level.table
        assert table is not None, "a level of SQL has a table"
        self.nodes: SqlNodes = SqlNodes(instance, level, previous.nodes if previous else None)
        self.keeps_versions = bool(table.version)
        self.fields = table.fields
        writers = level.writers or level.servers
        super().__init__([
            MysqlShard(level, self.nodes.of(level, reader), self.nodes.of(level, writer))
            for reader, writer in zip(level.servers, writers, strict=True)
        ])  # fmt: skip

    def release(self, successor: MysqlStorage | None) -> None:
        """Let go of the nodes that the successor has not taken over; requests that have begun still end with them."""
        self.nodes.close(successor.nodes if successor else None)
