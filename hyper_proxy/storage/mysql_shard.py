# cython: language_level=3, annotation_typing=False
"""The rows of one MySQL or MariaDB server as a key space.

Reads are single statements at the reader. Writes go to the writer: single statements where one is enough, else a short
transaction that locks the rows of its keys first, at READ COMMITTED, so that keys which are not there lock nothing. Two
who make the same row at once, and deadlocks, are tried again: a change is pure.

A new version is the worker's clock in microseconds, or one more than the row's if that is not less: it grows with every
write of any worker, and a key that went and came back is not taken for the old one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import uniform
from time import monotonic
from typing import TypeVar

import gevent

from hyper_proxy.config.model import Level, Table
from hyper_proxy.conn_pool.sql_connection import SERVER_SHARE, Parameter, Row, SqlConnection, is_lost
from hyper_proxy.conn_pool.sql_error import DEADLOCK, DUPLICATE, LOCK_WAIT, SqlError
from hyper_proxy.conn_pool.sql_node import SqlNode
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Put, Remove
from hyper_proxy.storage.sql_shape import Shape, shape_of
from hyper_proxy.storage.sql_text import marks, texts_of
from hyper_proxy.storage.table_checks import check_put, check_time, check_walk
from hyper_proxy.storage.together import Together

T = TypeVar("T")

BATCH_KEYS = 500  # of one statement
ATTEMPTS = 8  # at a transaction that meets another one
IN_THE_WAY = (DEADLOCK, DUPLICATE, LOCK_WAIT)
RETRY_S = 0.01  # the longest pause before the second attempt; it grows with each
ROOM_BYTES = 2000  # of a statement, beside its rows: names of columns ...
ROW_BYTES = 200  # ... of a row beside its texts, a byte of which takes two, for it is sent in hexadecimal,
FIELD_BYTES = 30  # ... and of each of its fields
CLEAR_ROWS = 1000  # of one DELETE, so that no statement lasts and no other waits long


@dataclass(frozen=True, slots=True)
class Stored:
    """A row that is there, whether its time is over or not: its item is None when that is so."""

    item: Item | None
    version: int


class MysqlShard(KeyValue):
    """One table. `reader` and `writer` may be the same."""

    kind = "mysql"

    def __init__(self, level: Level, table: Table, reader: SqlNode, writer: SqlNode) -> None:
        self.where = level.where
        self.table = table
        self.reader = reader
        self.writer = writer
        self.keeps_versions = bool(table.version)
        self._is_bare = not (table.flags or table.expires or table.version)
        self._texts = texts_of(table, [column for column, _ in level.where])
        self._where: list[Parameter] = [value for _, value in level.where]
        self._last_version = 0
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
            encode, decode, item = shape.key.encode, shape.key.decode, self._item
            for batch in _batches(dict.fromkeys(keys)):
                wanted = [encode(key) for key in batch]
                text = self._reading_text(len(wanted))
                for row in connection.execute(text, wanted + self._where + self._now(), READ):
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
            return int(connection.execute(self._texts.count, [*self._where, *self._now()], READ)[0][0] or 0)

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        check_walk(self.table)
        with self._reading.pool.connection() as connection:
            shape = shape_of(connection, self.table, self.where)
            rows = connection.execute(self._texts.scan, [cursor, *self._where, *self._now(), limit], READ)
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
            rows = [self._row(shape, key, put, self._next_version(0)) for key, put in last.items()]
            batches = list(_by_size(rows, connection.max_bytes))
            if len(batches) == 1:
                self._insert(connection, batches[0], self._texts.put)
                return True
            with connection.transaction():
                for batch in batches:
                    self._insert(connection, batch, self._texts.put)
            return True

        if not self._at_writer(write):
            self.update(list(last), lambda items: (list(last.values()), None))

    def delete_many(self, keys: Sequence[bytes]) -> int:
        def write(connection: SqlConnection) -> int:
            shape = shape_of(connection, self.table, self.where)
            batches = list(_batches(dict.fromkeys(keys)))
            if len(batches) == 1:
                return self._delete_live(connection, shape, batches[0])
            with connection.transaction():
                return sum(self._delete_live(connection, shape, batch) for batch in batches)

        return self._at_writer(write)

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        def write(connection: SqlConnection) -> tuple[T, tuple[int, ...]]:
            shape = shape_of(connection, self.table, self.where)
            with connection.transaction():
                stored = self._lock(connection, shape, keys)
                edits, result = change([stored[key].item if key in stored else None for key in keys])
                return result, self._apply(connection, shape, stored, list(zip(keys, edits, strict=True)))

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

    # ---- a transaction's steps

    def _lock(self, connection: SqlConnection, shape: Shape, keys: Sequence[bytes]) -> dict[bytes, Stored]:
        now = time.time()
        found = {}
        for batch in _batches(dict.fromkeys(keys)):
            wanted = [shape.key.encode(key) for key in batch]
            text = self._texts.lock.format(keys=marks(len(wanted)))
            for row in connection.execute(text, [*wanted, *self._where]):
                found[shape.key.decode(row[0] or b"")] = self._stored(shape, row, now)
        return found

    def _apply(
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
                version = self._next_version(floor)
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
                    new.append(self._row(shape, key, *edit))
            elif key not in stored:
                continue
            elif isinstance(edit, Remove):
                removed.append(shape.key.encode(key))
            elif self.table.expires:
                expiring.setdefault(edit.expires_at, []).append(key)
        for batch in _by_size(new, connection.max_bytes):
            self._insert(connection, batch, "")
        for gone in _batches(removed):
            connection.execute(self._texts.delete.format(keys=marks(len(gone))), [*gone, *self._where])
        for expires_at, keys in expiring.items():
            moment = shape.expires.encode(expires_at) if shape.expires else None
            for some in _batches(keys):
                wanted = [shape.key.encode(key) for key in some]
                text = self._texts.expire.format(keys=marks(len(wanted)))
                connection.execute(text, [moment, *wanted, *self._where])

    def _update_row(self, connection: SqlConnection, shape: Shape, key: bytes, put: Put, version: int) -> None:
        row = self._row(shape, key, put, version)
        count = len(row) - 1 - len(self._where)
        connection.execute(self._texts.update, [*row[1 : 1 + count], row[0], *self._where])

    def _insert(self, connection: SqlConnection, rows: list[list[Parameter]], behind: str) -> None:
        text = self._texts.insert + ", ".join([self._texts.row] * len(rows)) + behind
        connection.execute(text, [field for row in rows for field in row])

    def _delete_live(self, connection: SqlConnection, shape: Shape, keys: list[bytes]) -> int:
        wanted = [shape.key.encode(key) for key in keys]
        text = self._texts.delete_live.format(keys=marks(len(wanted)))
        connection.execute(text, [*wanted, *self._where, *self._now()])
        return connection.affected

    # ---- rows

    def _stored(self, shape: Shape, row: Row, now: float) -> Stored:
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

    def _item(self, shape: Shape, row: Row) -> Item | None:
        """The same of a row that is not over: the server has compared the time."""
        if self._is_bare:
            value = shape.value.decode(row[1:])
            return None if value is None else Item(value, 0, None, 0)
        return self._stored(shape, row, 0).item

    def _row(self, shape: Shape, key: bytes, put: Put, version: int) -> list[Parameter]:
        row: list[Parameter] = [shape.key.encode(key), *shape.value.encode(put.value)]
        if self.table.flags:
            row.append(put.flags)
        if shape.expires is not None:
            row.append(shape.expires.encode(put.expires_at))
        if self.table.version:
            row.append(version)
        return [*row, *self._where]

    def _now(self) -> list[Parameter]:
        return [time.time()] if self._texts.has_expiry else []

    def _next_version(self, floor: int) -> int:
        if not self.table.version:
            return 0
        self._last_version = max(floor + 1, self._last_version + 1, time.time_ns() // 1000)
        return self._last_version


def _expired(before: tuple[Put, int] | Expire | Remove | None, edit: Expire) -> tuple[Put, int] | Expire | Remove:
    """What two edits of one key come to, of which the second one is about its time."""
    if isinstance(before, tuple):
        put, version = before
        return Put(put.value, put.flags, edit.expires_at), version
    return before if isinstance(before, Remove) else edit


def _batches(keys: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(keys)
    while batch := list(islice(rest, BATCH_KEYS)):
        yield batch


def _by_size(rows: Iterable[list[Parameter]], max_bytes: int) -> Iterator[list[list[Parameter]]]:
    """Rows that fit into one statement together; one that is too large alone is left to the server's limit."""
    batch: list[list[Parameter]] = []
    size = ROOM_BYTES
    for row in rows:
        texts = sum(2 * len(field) for field in row if isinstance(field, bytes | str))
        cost = ROW_BYTES + FIELD_BYTES * len(row) + texts
        if batch and (len(batch) == BATCH_KEYS or size + cost > max_bytes):
            yield batch
            batch, size = [], ROOM_BYTES
        batch.append(row)
        size += cost
    if batch:
        yield batch
