"""memcached as a cache: get, add, set. Its keys are at most 250 bytes without blanks; its times are whole seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.cache import MARK, MARKED, Answer, Cache
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.memcache import MAX_KEY_BYTES, MemcacheGreeting
from hyper_proxy.storage.memcache_replies import MemcacheParser

END = b"END\r\n"
BLANK = 32  # a key has no byte up to this one
DEL = 127


class MemcacheCache(Cache):
    """The servers of one level."""

    kind = "memcache"
    parser = MemcacheParser

    def __init__(self, level: Level) -> None:
        self.greeting = MemcacheGreeting()

    def takes(self, key: bytes) -> bool:
        return 0 < len(key) <= MAX_KEY_BYTES and min(key) > BLANK and DEL not in key

    def question(self, keys: Sequence[bytes]) -> bytes:
        return b"get %b\r\n" % b" ".join(keys)

    def answers(self, reply: bytes, keys: Sequence[bytes]) -> list[Answer]:
        found: dict[bytes, Answer] = {}
        at = 0
        while reply.startswith(b"VALUE ", at):
            end = reply.index(b"\r\n", at)
            _, key, flags, size = reply[at:end].split(b" ")
            value = reply[end + 2 : end + 2 + int(size)]
            found[key] = MARKED if value == MARK else Item(value, int(flags), None, 0)
            at = end + 2 + int(size) + 2
        if reply[at:] != END or not found.keys() <= set(keys):
            raise ReplyError(f"get of {len(keys)} keys was answered {reply[at : at + 80]!r}")
        return [found.get(key) for key in keys]

    def fill(self, key: bytes, item: Item, seconds: float) -> bytes | None:
        if seconds < 1:
            return None  # 0 would be for ever
        return _storing(b"add", key, item.value, item.flags, math.floor(seconds))

    def mark(self, key: bytes, seconds: float) -> bytes:
        return _storing(b"set", key, MARK, 0, math.ceil(seconds))

    def is_marked(self, reply: bytes) -> bool:
        return reply == b"STORED\r\n"

    def empty(self) -> bytes:
        return b"flush_all\r\n"


def _storing(verb: bytes, key: bytes, value: bytes, flags: int, seconds: int) -> bytes:
    return b"%b %b %d %d %d\r\n%b\r\n" % (verb, key, flags, seconds, len(value), value)
