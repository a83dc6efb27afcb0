"""memcached as a cache: get, add, set. Its keys are at most 250 bytes without blanks; its times are whole seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.cache import MARK, Answer, Cache, answer
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.memcache import MemcacheGreeting
from hyper_proxy.storage.memcache_replies import MemcacheParser
from hyper_proxy.storage.memcache_speech import MemcacheSpeech
from hyper_proxy.storage.memcache_words import LAST_MOMENT, LONGEST_RELATIVE_S, is_plain

END = b"END\r\n"


class MemcacheCache(Cache):
    """The servers of one level."""

    kind = "memcache"
    parser = MemcacheParser
    speech = MemcacheSpeech()

    def __init__(self, level: Level) -> None:
        self.greeting = MemcacheGreeting()

    def takes(self, key: bytes) -> bool:
        return is_plain(key)

    def question(self, keys: Sequence[bytes]) -> bytes:
        return b"get %b\r\n" % b" ".join(keys)

    def answers(self, reply: bytes, keys: Sequence[bytes]) -> list[Answer]:
        found = values_in(reply, keys)
        return [answer(*found[key]) if key in found else None for key in keys]

    def fill(self, key: bytes, item: Item, seconds: float) -> bytes | None:
        if seconds < 1:
            return None  # 0 would be for ever
        return storing(b"add", key, item.value, item.flags, math.floor(seconds))

    def mark(self, key: bytes, seconds: float) -> bytes:
        return storing(b"set", key, MARK, 0, math.ceil(seconds))

    def is_marked(self, reply: bytes) -> bool:
        return reply == b"STORED\r\n"

    def empty(self) -> bytes:
        return b"flush_all\r\n"


def values_in(reply: bytes, keys: Sequence[bytes]) -> dict[bytes, tuple[bytes, int]]:
    """Value and flags by key, of an answer to get. Raises ReplyError when it is none to these keys, and ValueError."""
    found: dict[bytes, tuple[bytes, int]] = {}
    at = 0
    while reply.startswith(b"VALUE ", at):
        end = reply.index(b"\r\n", at)
        _, key, flags, size = reply[at:end].split(b" ")
        found[key] = reply[end + 2 : end + 2 + int(size)], int(flags)
        at = end + 2 + int(size) + 2
    if reply[at:] != END or not found.keys() <= set(keys):
        raise ReplyError(f"get of {len(keys)} keys was answered {reply[at : at + 80]!r}")
    return found


def storing(verb: bytes, key: bytes, value: bytes, flags: int, seconds: int, version: bytes = b"") -> bytes:
    """The request that stores for so many seconds: set, add, or cas with the version that is to be there."""
    until = seconds if seconds <= LONGEST_RELATIVE_S else min(int(time.time()) + seconds, LAST_MOMENT)
    last = b" " + version if version else b""
    return b"%b %b %d %d %d%b\r\n%b\r\n" % (verb, key, flags, until, len(value), last, value)
