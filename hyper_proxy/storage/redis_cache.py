# cython: language_level=3, annotation_typing=False
"""redis as a cache: MGET, SET NX PX, SET PX. It has no place for memcache's flags: items with flags are not cached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.cache import MARK, Answer, Cache, answer
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.redis import RedisGreeting, encode
from hyper_proxy.storage.redis_speech import RedisSpeech
from hyper_proxy.storage.resp import RespParser

# SET key value NX PX milliseconds, in pieces: for each key of a large request.
SET = b"*6\r\n$3\r\nSET\r\n"
NX_PX = b"\r\n$2\r\nNX\r\n$2\r\nPX\r\n"
CRLF = b"\r\n"
SIZES = [b"$%d\r\n" % size for size in range(1024)]


class RedisCache(Cache):
    """The servers of one level."""

    kind = "redis"
    parser = RespParser
    speech = RedisSpeech()

    def __init__(self, level: Level) -> None:
        self.level = level
        self.greeting = self.greeting_in(2)

    def greeting_in(self, resp: int) -> RedisGreeting:
        """The greeting for a client's version of RESP."""
        return RedisGreeting.of(self.level, 0, resp)

    def takes(self, key: bytes) -> bool:
        return True

    def question(self, keys: Sequence[bytes]) -> bytes:
        return encode("MGET", *keys)

    def answers(self, reply: bytes, keys: Sequence[bytes]) -> list[Answer]:
        found = list(elements(reply))
        if len(found) != len(keys):
            raise ReplyError(f"MGET of {len(keys)} keys was answered {reply[:80]!r}")
        return [None if value is None else answer(value, 0) for value in found]

    def fill(self, key: bytes, item: Item, seconds: float) -> bytes | None:
        if item.flags:
            return None
        lives = str(max(1, int(seconds * 1000))).encode()
        value = item.value
        return b"".join(
            [SET, size(len(key)), key, CRLF, size(len(value)), value, NX_PX, size(len(lives)), lives, CRLF]
        )

    def mark(self, key: bytes, seconds: float) -> bytes:
        return encode("SET", key, MARK, "PX", int(seconds * 1000))

    def is_marked(self, reply: bytes) -> bool:
        return reply == b"+OK\r\n"

    def empty(self) -> bytes:
        return encode("FLUSHDB")


def size(count: int) -> bytes:
    """How a string of so many bytes begins."""
    return SIZES[count] if count < len(SIZES) else b"$%d\r\n" % count


def elements(reply: bytes) -> Iterator[bytes | None]:
    """The strings of an array; nil, and what is no string, is None. The parser has found the reply whole."""
    if reply[:1] != b"*":
        raise ReplyError(f"MGET was answered {reply[:80]!r}")
    at = reply.index(b"\r\n") + 2
    while at < len(reply):
        end = reply.index(b"\r\n", at)
        size = int(reply[at + 1 : end]) if reply[at : at + 1] == b"$" else -1
        at = end + 2
        if size < 0:
            yield None
        else:
            yield reply[at : at + size]
            at += size + 2
