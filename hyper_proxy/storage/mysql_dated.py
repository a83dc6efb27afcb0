"""The tables of a level that are chosen by the date in the key. One is known once a key asks for it; where all
are asked, they are found by their names.

A table is shard slot + slots * ordinal of its first day, so the tables of one time are one number apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from hyper_proxy.config.model import Table
from hyper_proxy.config.table_split import day_of, pattern_of, read_day, table_at
from hyper_proxy.conn_pool.sql_node import SqlNode
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.storage.mysql_shard import MysqlShard

MAX_KNOWN = 4096  # a client that asks for every date there is must not fill the memory
NAMES = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME LIKE %s"

Make = Callable[[int, Table, date], MysqlShard]  # slot, its table, a day of that -> who serves it


class DatedTables:
    """Stands in the place of the list of shards."""

    def __init__(self, table: Table, slots: int, make: Make) -> None:
        self.table = table
        self.slots = slots
        self.make = make
        self.known: dict[int, MysqlShard] = {}

    def __len__(self) -> int:
        """Slots."""
        return self.slots

    def __getitem__(self, number: int) -> MysqlShard:
        shard = self.known.get(number)
        if shard is None:
            if len(self.known) >= MAX_KNOWN:
                self.known.clear()
            ordinal, slot = divmod(number, self.slots)
            day = date.fromordinal(ordinal)
            shard = self.known[number] = self.make(slot, table_at(self.table, slot, day), day)
        return shard

    def day(self, number: int) -> date:
        """The first day of a shard's table."""
        return date.fromordinal(number // self.slots)

    def number(self, key: bytes, slot: int) -> int:
        """The shard of a key of that slot. Raises ClientError."""
        return slot + self.slots * day_of(self.table, key).toordinal()

    def find(self, slot: int, node: SqlNode) -> Iterator[int]:
        """The shards of a slot that are there. Raises BackendError."""
        table = table_at(self.table, slot)
        like, names = pattern_of(table.name)
        with node.pool.connection() as connection:
            rows = connection.execute(NAMES, [table.schema or node.database, like], ADMIN)
        for row in rows:
            found = names.fullmatch(str(row[0] or b"", "utf-8"))
            day = read_day(found) if found else None
            if day is not None:
                yield slot + self.slots * day.toordinal()
