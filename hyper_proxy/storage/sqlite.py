"""The embedded storage: one SQLite file that all worker processes of an instance share.

SQLite calls block, so they run in one thread beside the event loop (sqlite_thread.py), and other clients go on. The
version of a row is its AUTOINCREMENT row id, which SQLite never gives twice; every Put is a new row, so versions
grow across workers and restarts. A row whose time is over is invisible at once and removed later, a few with every
few writes.

Format: https://www.sqlite.org/fileformat2.html; `application_id` marks the file as ours, `user_version` is the
schema's.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import gevent

from hyper_proxy.common import log
from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Level
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Put, Remove
from hyper_proxy.storage.sqlite_thread import SqliteThread, Work

T = TypeVar("T")

LOCK_S = 2.0  # the longest wait for the file's lock; a level's timeout.read_ms
TURN_S = 2.0  # the longest wait for a turn in the thread; a level's timeout.queue_ms
LINGER_S = 10.0  # a released storage is closed so much later: requests that have begun with it still end with it
SWEEP_EVERY = 16  # writes between two sweeps of expired rows ...
SWEEP_ROWS = 64  # ... and the most rows of one: four times what can have been written since, so the backlog shrinks
APPLICATION_ID = 0x48507831  # "HPx1"
SCHEMA_VERSION = 1

_OPENED: set[SqliteStorage] = set()
"""What this process has to close, also what is released and lingers."""

_SCHEMA = (
    "CREATE TABLE item ("
    " version INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL,"
    " flags INTEGER NOT NULL, expires_at REAL)",
    "CREATE INDEX item_expiry ON item (expires_at) WHERE expires_at IS NOT NULL",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_LIVE = "(expires_at IS NULL OR expires_at > ?)"
_READ = f"SELECT value, flags, expires_at, version FROM item WHERE key = ? AND {_LIVE}"
_PUT = "INSERT OR REPLACE INTO item (key, value, flags, expires_at) VALUES (?, ?, ?, ?)"
_EXPIRE = "UPDATE item SET expires_at = ? WHERE key = ?"
_REMOVE = "DELETE FROM item WHERE key = ?"
_COUNT = f"SELECT count(*) FROM item WHERE {_LIVE}"
_SCAN = f"SELECT version, key FROM item WHERE version > ? AND {_LIVE} ORDER BY version LIMIT ?"
_SWEEP = "DELETE FROM item WHERE version IN (SELECT version FROM item WHERE expires_at <= ? LIMIT ?)"


class SqliteStorage(KeyValue):
    """The key space in the file at `path`, for one worker process: open it after the fork, in the worker."""

    kind = "sqlite"
    forwards = False  # no front's bytes are sent on as they are

    def __init__(self, instance_name: str, path: str, lock_s: float = LOCK_S, turn_s: float = TURN_S) -> None:
        self.instance_name = instance_name
        self.path = path
        self.lock_s = lock_s
        self.turn_s = turn_s
        self._thread: SqliteThread | None = None
        self._writes = 0
        self._made = False

    @classmethod
    def of_level(cls, instance_name: str, level: Level, previous: SqliteStorage | None) -> SqliteStorage:
        """The open storage of a level: `previous` when it is the same. Raises BackendError."""
        file, timeout = level.servers[0].file, level.timeout
        new = cls(instance_name, file, timeout.read_ms / 1000, timeout.queue_ms / 1000)
        if previous is not None and previous._settings() == new._settings():
            return previous
        new.open()
        return new

    def _settings(self) -> tuple[object, ...]:
        return self.instance_name, self.path, self.lock_s, self.turn_s

    def release(self, successor: KeyValue | None) -> None:
        """No new request comes here; close when those that have begun must have ended."""
        gevent.spawn_later(LINGER_S, self.close)

    def open(self) -> None:
        """Open the file, and make it and its folder if absent. Raises BackendError when it can't be used."""
        thread = SqliteThread(self.instance_name, self.path, self.lock_s, self.turn_s)
        thread.start(self._connect, self._prepare)
        if self._made:  # told for who has misspelt its path
            log.info("storage.created", instance=self.instance_name, file=self.path)
        self._thread = thread
        _OPENED.add(self)

    def close(self) -> None:
        """Finish what runs, close the file and end the thread. Closing twice is harmless."""
        thread, self._thread = self._thread, None
        _OPENED.discard(self)
        if thread is not None:
            thread.stop()

    # ---- verbs

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        def work(connection: sqlite3.Connection) -> list[Item | None]:
            now = time.time()
            return [_read(connection, key, now) for key in keys]

        return self._run(work, writes=False)

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        def work(connection: sqlite3.Connection) -> tuple[T, tuple[int, ...]]:
            now = time.time()
            edits, result = change([_read(connection, key, now) for key in keys])
            versions = tuple(_apply(connection, key, edit) for key, edit in zip(keys, edits, strict=True))
            self._sweep(connection, now)
            return result, versions

        return self._run(work, writes=True)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for key, put in entries:
                _apply(connection, key, put)
            self._sweep(connection, time.time())

        self._run(work, writes=True)

    def count(self) -> int:
        return self._run(lambda connection: int(connection.execute(_COUNT, (time.time(),)).fetchone()[0]), writes=False)

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        def work(connection: sqlite3.Connection) -> tuple[int, list[bytes]]:
            rows = connection.execute(_SCAN, (cursor, time.time(), limit)).fetchall()
            return (rows[-1][0] if len(rows) == limit else 0), [key for _, key in rows]

        return self._run(work, writes=False)

    def clear(self) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM item")

        self._run(work, writes=True)

    def _run(self, work: Work[T], *, writes: bool) -> T:
        if self._thread is None:
            raise self._error("closed", "the storage is closed")
        return self._thread.run(work, writes=writes)

    def _sweep(self, connection: sqlite3.Connection, now: float) -> None:
        self._writes += 1
        if self._writes % SWEEP_EVERY == 0:
            connection.execute(_SWEEP, (now, SWEEP_ROWS))

    # ---- the file

    def _connect(self) -> sqlite3.Connection:
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        # Nothing but the storage's thread touches the connection, which is always the same one while it is open.
        return sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")  # several workers may find the file empty; one makes the tables
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if not tables:
            for statement in _SCHEMA:
                connection.execute(statement)
        application, version = (connection.execute(f"PRAGMA {name}").fetchone()[0]
                                for name in ("application_id", "user_version"))
        connection.execute("COMMIT")  # it may be refused: then all of this is done again, and maybe by another worker
        self._made = self._made or not tables
        if application != APPLICATION_ID:
            raise self._error("broken", "the file is another program's SQLite database")
        if version != SCHEMA_VERSION:
            raise self._error("broken", f"the file has schema {version}, this program knows {SCHEMA_VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")  # readers beside a writer
        connection.execute("PRAGMA synchronous = NORMAL")

    def _error(self, kind: str, detail: str) -> BackendError:
        return BackendError(self.instance_name, self.path, kind, detail)


def close_all() -> None:
    """Close every file that this process has open; the last process to do so leaves all data in the file itself."""
    gevent.joinall([gevent.spawn(storage.close) for storage in list(_OPENED)])


def _read(connection: sqlite3.Connection, key: bytes, now: float) -> Item | None:
    row = connection.execute(_READ, (key, now)).fetchone()
    return Item(*row) if row else None


def _apply(connection: sqlite3.Connection, key: bytes, edit: Edit) -> int:
    """Carry out one edit; the version that a Put got, else 0."""
    if isinstance(edit, Put):
        return connection.execute(_PUT, (key, edit.value, edit.flags, edit.expires_at)).lastrowid or 0
    if isinstance(edit, Expire):
        connection.execute(_EXPIRE, (edit.expires_at, key))
    elif isinstance(edit, Remove):
        connection.execute(_REMOVE, (key,))
    return 0
