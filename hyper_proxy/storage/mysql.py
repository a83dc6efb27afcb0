"""A table of MySQL or MariaDB as a key space: its parts as shards, each a table at a reader and a writer.

A part is the table of one server, or one of many tables in several databases (config/table_split.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import product

from hyper_proxy.common import parallel
from hyper_proxy.config.model import Level, Server, Table
from hyper_proxy.config.table_split import Home, home_at, homes_of, placed, server_at, table_at
from hyper_proxy.conn_pool.sql_node import SqlNode
from hyper_proxy.storage.mysql_dated import DatedTables
from hyper_proxy.storage.mysql_shard import MysqlShard
from hyper_proxy.storage.sharded import Sharded
from hyper_proxy.storage.sql_beat import Beat
from hyper_proxy.storage.table_checks import check_walk


class SqlNodes:
    """The readers, then those writers that are other servers. What has not changed is taken over from `previous`."""

    def __init__(self, instance: str, level: Level, previous: SqlNodes | None) -> None:
        kept = previous.by_identity if previous else {}
        before = {node.label: node for node in previous} if previous else {}
        self.by_identity: dict[Hashable, SqlNode] = {}
        for server in [server for home in homes_of(level) for server in (*home.servers, *home.writers)]:
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
                node.close(heirs.get(node.label))


def _identity(level: Level, server: Server) -> Hashable:
    """What must be equal for a node to be the same one."""
    user = (level.username, level.password, level.database, level.max_connections, level.max_lag_s, level.heartbeat)
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
        self.level = level
        self.homes = homes_of(level)
        slots = range(len(placed(level)))
        self.dated = DatedTables(table, len(slots), self._make) if table.date else None
        fixed = [] if self.dated else [self._make(slot, table_at(table, slot)) for slot in slots]
        super().__init__(self.dated or fixed)
        beat = Beat(level.heartbeat) if level.heartbeat else None
        for home, slot in product(self.homes, slots) if level.max_lag_s else ():
            reader = self._node(slot, home, home.servers)
            if reader is not self._node(slot, home, home.writers):
                reader.watch_lag(level.max_lag_s, beat)

    def _make(self, slot: int, table: Table, day: date | None = None) -> MysqlShard:
        home = self.homes[home_at(self.level, day)]
        reader, writer = (self._node(slot, home, servers) for servers in (home.servers, home.writers))
        return MysqlShard(self.level, table, reader, writer)

    def _node(self, slot: int, home: Home, servers: Sequence[Server]) -> SqlNode:
        return self.nodes.of(self.level, servers[server_at(self.level, slot, home)])

    # ---- where tables are chosen by date

    def shard(self, key: bytes) -> int:
        slot = super().shard(key)
        return self.dated.number(key, slot) if self.dated else slot

    def _all(self) -> dict[int, list[int]]:
        """Those that are there: a writer has none later than its reader."""
        if self.dated is None:
            return super()._all()
        dated = self.dated

        def find(place: tuple[int, int]) -> list[int]:
            at, slot = place
            home = self.homes[at]
            found = dated.find(slot, self._node(slot, home, home.writers))
            return [number for number in found if home_at(self.level, dated.day(number)) == at]

        found = parallel.each(find, list(product(range(len(self.homes)), range(len(dated)))))
        return {number: [] for numbers in found for number in numbers}

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        """Dated tables one time after the other, all slots at once: numbers grow with time, so the last one is the
        cursor."""
        if self.dated is None:
            return super().scan(cursor, limit)
        check_walk(self.dated.table)
        first = self.dated.number(b"%d" % cursor, 0) if cursor else 0
        times: dict[int, dict[int, list[int]]] = {}
        for number in self._all():
            times.setdefault(number // len(self.dated), {})[number] = []
        for time in sorted(time for time in times if time >= first // len(self.dated)):
            pages = self._ask(times[time], lambda shard, part: shard.scan(cursor, limit))
            keys = sorted((key for _, page in pages for key in page), key=int)[:limit]
            if keys:
                return int(keys[-1]), keys
        return 0, []

    def release(self, successor: MysqlStorage | None) -> None:
        """Let go of the nodes that the successor has not taken over; requests that have begun still end with them."""
        self.nodes.close(successor.nodes if successor else None)
