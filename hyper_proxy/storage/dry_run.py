"""The key space of a level whose servers are not asked: it refuses what they do, and forgets what it is told.

For who wants to know beforehand what a client would read (hyper_proxy/explain.py). What only servers know, the types of
their columns or what a key holds, is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Level
from hyper_proxy.storage import memcache_words, table_checks
from hyper_proxy.storage.keyvalue import Change, Expire, Item, KeyValue, Put
from hyper_proxy.storage.memcache_values import UNLISTED, check_alone
from hyper_proxy.storage.objects import parse_object, unknown_field
from hyper_proxy.storage.redis_values import check_flags
from hyper_proxy.storage.sharded import check_together

T = TypeVar("T")


class DryRun(KeyValue):
    """there: has every key a value, or none? `shard`: where a key is, None where chance decides."""

    def __init__(self, level: Level, place: str, shard: Callable[[bytes], int | None], there: bool) -> None:
        self.level = level
        self.table = level.table
        self.kind = level.storage
        self.place = place
        self.fields = level.table.fields if level.table else ()
        self.keeps_versions = bool(level.table.version) if level.table else level.storage != "redis"
        self.shard = shard
        self.item = Item(b"{}" if self.fields else b"0", 0, None, 1) if there else None

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        self._check_names(keys)
        return [self.item] * len(keys)

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        if self.kind == "memcache":
            check_alone(keys)
        check_together([self.shard(key) for key in keys])
        edits, result = change(self.get_many(keys))
        for key, edit in zip(keys, edits, strict=True):
            if isinstance(edit, Put):
                self._check(key, edit)
            elif isinstance(edit, Expire):
                self._check_time(edit.expires_at)
        return result, (0,) * len(keys)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        for key, put in entries:
            self._check(key, put)

    def delete_many(self, keys: Sequence[bytes]) -> int:
        return sum(item is not None for item in self.get_many(keys))

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        if self.item is not None:
            self._check_time(expires_at)
        return self.get_many(keys)

    def count(self) -> int:
        return 0

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        if self.kind == "memcache":
            raise ClientError(UNLISTED)
        if self.table is not None:
            table_checks.check_walk(self.table)
        return 0, []

    def clear(self) -> None:
        """Nothing is there."""

    def _check(self, key: bytes, put: Put) -> None:
        if self.kind == "redis":
            check_flags(put)
        elif self.kind == "memcache":
            memcache_words.storing(key, put, b"")
        elif self.table is not None:
            table_checks.check_put(self.table, put)
        for name in parse_object(put.value) if self.fields else ():
            if name not in self.fields:
                raise unknown_field(name, self.fields)

    def _check_time(self, expires_at: float | None) -> None:
        if self.kind == "memcache":
            memcache_words.seconds(expires_at)
        elif self.table is not None:
            table_checks.check_time(self.table, expires_at)

    def _check_names(self, keys: Sequence[bytes]) -> None:
        for key in keys if self.kind == "memcache" else ():
            memcache_words.name(key)
