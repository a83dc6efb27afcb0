# cython: language_level=3, annotation_typing=False
"""Rows of one table as items of a key space, and the other way round.

A new version is the worker's clock in microseconds, or one more than the row's if that is not less: it grows with every
write of any worker, and a key that went and came back is not taken for the old one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hyper_proxy.config.model import Table
from hyper_proxy.conn_pool.sql_connection import Parameter, Row
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.storage.sql_shape import Shape


@dataclass(frozen=True, slots=True)
class Stored:
    """A row that is there, whether its time is over or not: its item is None when that is so."""

    item: Item | None
    version: int


class MysqlRows:
    """where: the values of the columns that have the same one in every row of this key space."""

    def __init__(self, table: Table, where: list[Parameter]) -> None:
        self.table = table
        self.where = where
        self._is_bare = not (table.flags or table.expires or table.version)
        self._last_version = 0

    def stored(self, shape: Shape, row: Row, now: float) -> Stored:
        """A row as it was read (Texts.read)."""
        width = 1 + len(self.table.values)
        fields = iter(row[width:])
        flags = int(next(fields) or 0) if self.table.flags else 0
        expires_at = shape.expires.decode(next(fields)) if shape.expires else None
        version = int(next(fields) or 0) if self.table.version else 0
        value = shape.value.decode(row[1:width])
        if value is None or (expires_at is not None and expires_at <= now):
            return Stored(None, version)
        return Stored(Item(value, flags, expires_at, version), version)

    def item(self, shape: Shape, row: Row) -> Item | None:
        """The same of a row that is not over: the server has compared the time."""
        if self._is_bare:
            value = shape.value.decode(row[1:])
            return None if value is None else Item(value, 0, None, 0)
        return self.stored(shape, row, 0).item

    def row(self, shape: Shape, key: bytes, put: Put, version: int) -> list[Parameter]:
        """The parameters of a row, in the order of its columns."""
        row: list[Parameter] = [shape.key.encode(key), *shape.value.encode(put.value)]
        if self.table.flags:
            row.append(put.flags)
        if shape.expires is not None:
            row.append(shape.expires.encode(put.expires_at))
        if self.table.version:
            row.append(version)
        return [*row, *self.where]

    def now(self) -> list[Parameter]:
        """The parameter that tells rows that are over from others, where there are such."""
        return [time.time()] if self.table.expires else []

    def next_version(self, floor: int) -> int:
        """More than `floor`; 0 where versions are not kept."""
        if not self.table.version:
            return 0
        self._last_version = max(floor + 1, self._last_version + 1, time.time_ns() // 1000)
        return self._last_version
