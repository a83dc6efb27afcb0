"""Lushan above another level: what it has is read there, the rest below. It is filled by others, so nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Level
from hyper_proxy.storage.cache import Answer
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.lushan import key_there
from hyper_proxy.storage.memcache_cache import MemcacheCache


class LushanCache(MemcacheCache):
    """db_of: the level's rule, from a key to the number of its database; raises ClientError where there is none."""

    kind = "lushan"
    keeps = False

    def __init__(self, level: Level, db_of: Callable[[bytes], int]) -> None:
        super().__init__(level)
        self.db_of = db_of

    def takes(self, key: bytes) -> bool:
        try:
            return super().takes(self._there(key))
        except ClientError:
            return False

    def question(self, keys: Sequence[bytes]) -> bytes:
        return super().question([self._there(key) for key in keys])

    def answers(self, reply: bytes, keys: Sequence[bytes]) -> list[Answer]:
        return super().answers(reply, [self._there(key) for key in keys])

    def fill(self, key: bytes, item: Item, seconds: float) -> bytes | None:
        return None

    def _there(self, key: bytes) -> bytes:
        return key_there(self.db_of(key), key)
