"""Key-value storages as the tests of their common behaviour use them: each kind, empty, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyper_proxy.config.model import Level, Server, Table, Timeout
from hyper_proxy.hashing import build
from hyper_proxy.storage.keyvalue import KeyValue
from hyper_proxy.storage.memcache_values import MemcacheValues
from hyper_proxy.storage.mysql import MysqlStorage
from hyper_proxy.storage.redis_values import RedisValues
from hyper_proxy.storage.sqlite import SqliteStorage
from tests.kit.mariadb import DATABASE, PASSWORD, USER, MariaDb
from tests.kit.servers import Running

KINDS = ("sqlite", "mysql")
PATIENT = Timeout(5000, 5000, 5000)
FULL = Table("kv", "k", "v", flags="f", expires="e", version="ver", id="id")


def sqlite_level(file: str = "keys.db") -> str:
    """A level of a configuration. It has more than the usual 200 ms: the disk of a busy machine may take that long."""
    times = "timeout = { read_ms = 5000, queue_ms = 10000 }"
    return f'  [[instance.level]]\n  storage = "sqlite"\n  servers = ["{file}"]\n  {times}\n'


@contextmanager
def open_sqlite(folder: Path) -> Iterator[KeyValue]:
    """In a file of its own."""
    kv = SqliteStorage("user", str(folder / "kv.db"))
    kv.open()
    yield kv
    kv.close()


def mysql_level(*servers: MariaDb, table: Table = FULL, timeout: Timeout = PATIENT, **settings: object) -> Level:
    """A level over that table of some servers, as a configuration makes it."""
    at = tuple(Server("127.0.0.1", server.port) for server in servers)
    level = Level("mysql", at, username=USER, password=PASSWORD, database=DATABASE, table=table, timeout=timeout)
    for name, value in settings.items():
        object.__setattr__(level, name, value)
    return level


@contextmanager
def open_mysql(*servers: MariaDb, **settings: object) -> Iterator[MysqlStorage]:
    """Over the tables of some servers; see `mysql_level`."""
    kv = MysqlStorage("user", mysql_level(*servers, **settings))  # type: ignore[arg-type]
    yield kv
    kv.release(None)


@contextmanager
def open_redis(*servers: Running) -> Iterator[RedisValues]:
    """Over some servers."""
    level = Level("redis", tuple(Server("127.0.0.1", server.port) for server in servers), timeout=PATIENT)
    kv = RedisValues("user", level)
    kv.placement = build("", "ketama", "", level.servers)
    yield kv
    kv.release(None)


@contextmanager
def open_memcache(*servers: Running) -> Iterator[MemcacheValues]:
    """Over some servers."""
    level = Level("memcache", tuple(Server("127.0.0.1", server.port) for server in servers), timeout=PATIENT)
    kv = MemcacheValues("user", level)
    kv.placement = build("", "ketama", "", level.servers)
    yield kv
    kv.release(None)
