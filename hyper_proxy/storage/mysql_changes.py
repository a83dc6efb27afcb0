# cython: language_level=3, annotation_typing=False
"""The steps of a transaction on the rows of one table: lock them, and write what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hyper_proxy.config.model import Table
from hyper_proxy.conn_pool.sql_connection import Parameter, SqlConnection
from hyper_proxy.storage.keyvalue import Edit, Expire, Put, Remove
from hyper_proxy.storage.mysql_rows import MysqlRows, Stored
from hyper_proxy.storage.sql_batches import batches_of, by_size
from hyper_proxy.storage.sql_shape import Shape
from hyper_proxy.storage.sql_text import Texts, marks
from hyper_proxy.storage.table_checks import check_put, check_time


class MysqlChanges:
    """texts: the statements of the table."""

    def __init__(self, table: Table, texts: Texts, rows: MysqlRows) -> None:
        self.table = table
        self._texts = texts
        self._rows = rows
        self._where = rows.where

    def lock(self, connection: SqlConnection, shape: Shape, keys: Sequence[bytes]) -> dict[bytes, Stored]:
        """Those of the rows that are there, and stay as they are until the transaction ends."""
        now = time.time()
        found = {}
        for batch in batches_of(dict.fromkeys(keys)):
            wanted = [shape.key.encode(key) for key in batch]
            text = self._texts.lock.format(keys=marks(len(wanted)))
            for row in connection.execute(text, [*wanted, *self._where]):
                found[shape.key.decode(row[0] or b"")] = self._rows.stored(shape, row, now)
        return found

    def apply(
        self, connection: SqlConnection, shape: Shape, stored: dict[bytes, Stored], edits: list[tuple[bytes, Edit]]
    ) -> tuple[int, ...]:
        """Carry out the edits; the version that each Put got, else 0."""
        versions = []
        last: dict[bytes, tuple[Put, int] | Expire | Remove] = {}
        for key, edit in edits:
            version = 0
            if isinstance(edit, Put):
                check_put(self.table, edit)
                before = last.get(key)
                floor = before[1] if isinstance(before, tuple) else stored[key].version if key in stored else 0
                version = self._rows.next_version(floor)
                last[key] = (edit, version)
            elif isinstance(edit, Expire):
                check_time(self.table, edit.expires_at)
                last[key] = _expired(last.get(key), edit)
            elif isinstance(edit, Remove):
                last[key] = edit
            versions.append(version)
        self._write_rows(connection, shape, stored, last)
        return tuple(versions)

    def _write_rows(
        self, connection: SqlConnection, shape: Shape, stored: dict[bytes, Stored],
        last: dict[bytes, tuple[Put, int] | Expire | Remove],
    ) -> None:  # fmt: skip
        """What becomes of each key, in as few statements as it takes."""
        new, removed = [], []
        expiring: dict[float | None, list[bytes]] = {}
        for key, edit in last.items():
            if isinstance(edit, tuple):
                if key in stored:
                    self._update_row(connection, shape, key, *edit)
                else:
                    new.append(self._rows.row(shape, key, *edit))
            elif key not in stored:
                continue
            elif isinstance(edit, Remove):
                removed.append(shape.key.encode(key))
            elif self.table.expires:
                expiring.setdefault(edit.expires_at, []).append(key)
        for batch in by_size(new, connection.max_bytes):
            self.insert(connection, batch, "")
        for gone in batches_of(removed):
            connection.execute(self._texts.delete.format(keys=marks(len(gone))), [*gone, *self._where])
        for expires_at, keys in expiring.items():
            moment = shape.expires.encode(expires_at) if shape.expires else None
            for some in batches_of(keys):
                wanted = [shape.key.encode(key) for key in some]
                text = self._texts.expire.format(keys=marks(len(wanted)))
                connection.execute(text, [moment, *wanted, *self._where])

    def _update_row(self, connection: SqlConnection, shape: Shape, key: bytes, put: Put, version: int) -> None:
        row = self._rows.row(shape, key, put, version)
        count = len(row) - 1 - len(self._where)
        connection.execute(self._texts.update, [*row[1 : 1 + count], row[0], *self._where])

    def insert(self, connection: SqlConnection, rows: list[list[Parameter]], behind: str) -> None:
        """New rows in one statement; `behind` says what becomes of those that are there already."""
        text = self._texts.insert + ", ".join([self._texts.row] * len(rows)) + behind
        connection.execute(text, [field for row in rows for field in row])

    def delete_live(self, connection: SqlConnection, shape: Shape, keys: list[bytes]) -> int:
        """How many there were: rows whose time is over are none."""
        wanted = [shape.key.encode(key) for key in keys]
        text = self._texts.delete_live.format(keys=marks(len(wanted)))
        connection.execute(text, [*wanted, *self._where, *self._rows.now()])
        return connection.affected


def _expired(before: tuple[Put, int] | Expire | Remove | None, edit: Expire) -> tuple[Put, int] | Expire | Remove:
    """What two edits of one key come to, of which the second one is about its time."""
    if isinstance(before, tuple):
        put, version = before
        return Put(put.value, put.flags, edit.expires_at), version
    return before if isinstance(before, Remove) else edit
