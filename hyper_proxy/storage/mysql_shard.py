# cython: language_level=3, annotation_typing=False
"""The rows of one MySQL or MariaDB server as a key space.

Reads are single statements at the reader. Writes go to the writer: single statements where one is enough, else a short
transaction that locks the rows of its keys first, at READ COMMITTED, so that keys which are not there lock nothing. Two
who make the same row at once, and deadlocks, are tried again: a change is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import uniform
from time import monotonic
from typing import TypeVar

import gevent

from hyper_proxy.common import witness
from hyper_proxy.config.model import Level, Table
from hyper_proxy.conn_pool.sql_connection import SERVER_SHARE, Parameter, SqlConnection, is_lost
from hyper_proxy.conn_pool.sql_error import DEADLOCK, DUPLICATE, LOCK_WAIT, SqlError
from hyper_proxy.conn_pool.sql_node import SqlNode
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.keyvalue import Change, Item, KeyValue, Put
from hyper_proxy.storage.mysql_changes import MysqlChanges
from hyper_proxy.storage.mysql_rows import MysqlRows
from hyper_proxy.storage.sql_batches import batches_of, by_size
from hyper_proxy.storage.sql_shape import shape_of
from hyper_proxy.storage.sql_text import marks, texts_of
from hyper_proxy.storage.table_checks import check_put, check_walk
from hyper_proxy.storage.together import Together

T = TypeVar("T")

ATTEMPTS = 8  # at a transaction that meets another one
IN_THE_WAY = (DEADLOCK, DUPLICATE, LOCK_WAIT)
RETRY_S = 0.01  # the longest pause before the second attempt; it grows with each
CLEAR_ROWS = 1000  # of one DELETE, so that no statement lasts and no other waits long


class MysqlShard(KeyValue):
    """One table. `reader` and `writer` may be the same."""

    kind = "mysql"

    def __init__(self, level: Level, table: Table, reader: SqlNode, writer: SqlNode) -> None:
        self.where = level.where
        self.table = table
        self.reader = reader
        self.writer = writer
        self.keeps_versions = bool(table.version)
        self._texts = texts_of(table, [column for column, _ in level.where])
        self._where: list[Parameter] = [value for _, value in level.where]
        self._rows = MysqlRows(table, self._where)
        self._changes = MysqlChanges(table, self._texts, self._rows)
        self._reading_texts: dict[int, str] = {}  # by the number of keys
        self._together = Together(self._read_surely)

    # ---- reading

    @property
    def _reading(self) -> SqlNode:
        """Who is asked: a reader that is too far behind is not."""
        return self.writer if self.reader.is_late else self.reader

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        """Keys of one statement (BATCH_KEYS) are of one moment."""
        found = self._together.get(keys)
        witness.note(self._reading.label)  # who has asked together with others, too
        return [found.get(key) for key in keys]

    def _read_surely(self, keys: Sequence[bytes]) -> dict[bytes, Item | None]:
        try:
            return self._read(keys)
        except SqlError as error:
            if not is_lost(error):
                raise
            return self._read(keys)  # reading twice does no harm

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Item | None]:
        found: dict[bytes, Item | None] = {}
        pool = self._reading.pool
        connection = pool.take()  # without a context: for every miss of a level above
        try:
            shape = shape_of(connection, self.table, self.where)
            encode, decode, item = shape.key.encode, shape.key.decode, self._rows.item
            for batch in batches_of(dict.fromkeys(keys)):
                wanted = [encode(key) for key in batch]
                text = self._reading_text(len(wanted))
                for row in connection.execute(text, wanted + self._where + self._rows.now(), READ):
                    found[decode(row[0] or b"")] = item(shape, row)
        finally:
            pool.give_back(connection)
        return found

    def _reading_text(self, keys: int) -> str:
        text = self._reading_texts.get(keys)
        if text is None:
            text = self._reading_texts[keys] = self._texts.read.format(keys=marks(keys))
        return text

    def count(self) -> int:
        with self._reading.pool.connection() as connection:
            shape_of(connection, self.table, self.where)
            return int(connection.execute(self._texts.count, [*self._where, *self._rows.now()], READ)[0][0] or 0)

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        check_walk(self.table)
        with self._reading.pool.connection() as connection:
            shape = shape_of(connection, self.table, self.where)
            rows = connection.execute(self._texts.scan, [cursor, *self._where, *self._rows.now(), limit], READ)
        following = int(rows[-1][0] or 0) if len(rows) == limit else 0
        return following, [shape.key.decode(row[1] or b"") for row in rows]

    # ---- writing

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        last = dict(entries)
        for put in last.values():
            check_put(self.table, put)

        def write(connection: SqlConnection) -> bool:
            shape = shape_of(connection, self.table, self.where)
            if not shape.blind:
                return False
            rows = [self._rows.row(shape, key, put, self._rows.next_version(0)) for key, put in last.items()]
            batches = list(by_size(rows, connection.max_bytes))
            if len(batches) == 1:
                self._changes.insert(connection, batches[0], self._texts.put)
                return True
            with connection.transaction():
                for batch in batches:
                    self._changes.insert(connection, batch, self._texts.put)
            return True

        if not self._at_writer(write):
            self.update(list(last), lambda items: (list(last.values()), None))

    def delete_many(self, keys: Sequence[bytes]) -> int:
        def write(connection: SqlConnection) -> int:
            shape = shape_of(connection, self.table, self.where)
            batches = list(batches_of(dict.fromkeys(keys)))
            if len(batches) == 1:
                return self._changes.delete_live(connection, shape, batches[0])
            with connection.transaction():
                return sum(self._changes.delete_live(connection, shape, batch) for batch in batches)

        return self._at_writer(write)

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        def write(connection: SqlConnection) -> tuple[T, tuple[int, ...]]:
            shape = shape_of(connection, self.table, self.where)
            with connection.transaction():
                stored = self._changes.lock(connection, shape, keys)
                edits, result = change([stored[key].item if key in stored else None for key in keys])
                return result, self._changes.apply(connection, shape, stored, list(zip(keys, edits, strict=True)))

        return self._at_writer(write)

    def clear(self) -> None:
        def write(connection: SqlConnection) -> int:
            shape_of(connection, self.table, self.where)
            connection.execute(self._texts.clear, [*self._where, CLEAR_ROWS])
            return connection.affected

        while self._at_writer(write) == CLEAR_ROWS:
            pass

    def _at_writer(self, write: Callable[[SqlConnection], T]) -> T:
        """What `write` returns; tried again while there is time when another transaction was in the way, for then
        nothing of it was done. Raises BackendError."""
        attempt = 1
        deadline = monotonic() + self.writer.read_s * SERVER_SHARE
        while True:
            try:
                with self.writer.pool.connection() as connection:
                    return write(connection)
            except SqlError as error:
                if error.code not in IN_THE_WAY or attempt == ATTEMPTS or monotonic() >= deadline:
                    raise
            gevent.sleep(uniform(0, RETRY_S * attempt))
            attempt += 1
