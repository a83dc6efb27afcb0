"""Every kind of storage, by its name in the configuration: a storage is one file and one row here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyper_proxy.config.model import Level
from hyper_proxy.storage.lushan import LushanStorage
from hyper_proxy.storage.memcache import MemcacheStorage
from hyper_proxy.storage.memcache_values import MemcacheValues
from hyper_proxy.storage.redis_topology import redis_storage
from hyper_proxy.storage.redis_topology_values import redis_values
from hyper_proxy.storage.sqlite import SqliteStorage


def _mysql(instance: str, level: Level, previous: Any) -> Any:
    """Its driver is loaded by those that use it."""
    from hyper_proxy.storage.mysql import MysqlStorage

    return MysqlStorage(instance, level, previous)


# (instance name, level, the storage of the configuration before or None) -> a storage that may take over its nodes
Make = Callable[[str, Level, Any], Any]

FORWARDING: dict[str, Make] = {
    "redis": redis_storage,
    "memcache": MemcacheStorage,
    "lushan": LushanStorage,
}
"""For clients that speak the servers' own protocol."""

KEY_SPACES: dict[str, Make] = {
    "redis": redis_values,
    "memcache": MemcacheValues,
    "sqlite": SqliteStorage.of_level,
    "mysql": _mysql,
}
"""Each a KeyValue: for clients of every protocol, and below other levels."""
