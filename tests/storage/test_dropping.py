"""A large reply for which there is no memory: an error stands in its place, and what is around it stays whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType

import pytest

from hyper_proxy.common.memory import MEMORY
from tests.kit.plain import both

LARGE = 70_000


@pytest.fixture(autouse=True)
def short() -> Iterator[None]:
    """From now on memory is short."""
    MEMORY.limit = 1
    yield
    MEMORY.limit = 0


def bulk(size: int, kind: bytes = b"$") -> bytes:
    return b"%b%d\r\n%b\r\n" % (kind, size, b"\r\n$5\r\n" * (size // 6) + b"x" * (size % 6))


def array(*values: bytes) -> bytes:
    return b"*%d\r\n%b" % (len(values), b"".join(values))


REDIS = [
    b"+OK\r\n", bulk(10), bulk(300_000), b":1\r\n", bulk(LARGE, b"="),
    array(bulk(5), bulk(400_000), array(b":1\r\n", bulk(90_000, b"!"), b"_\r\n"), bulk(0)), b"-ERR no\r\n",
    array(*[bulk(500)] * 400), b"$-1\r\n", bulk(LARGE), bulk(LARGE), b"+last\r\n",
]  # fmt: skip


def item(size: int) -> bytes:
    return b"VALUE key 0 %d\r\n%b\r\n" % (size, b"END\r\n" * (size // 5) + b"x" * (size % 5))


MEMCACHE = [
    b"STORED\r\n", item(10) + b"END\r\n", item(300_000) + b"END\r\n", b"END\r\n",
    b"VA 90000 f1\r\n" + b"x" * 90_000 + b"\r\n", b"HD\r\n", item(5) + item(200_000) + item(7) + b"END\r\n",
    item(LARGE) + b"SERVER_ERROR out of memory\r\n", b"7\r\n",
]  # fmt: skip


def cut(data: bytes, seed: int) -> Iterator[bytes]:
    """In packets of random sizes."""
    rng = random.Random(seed)
    start = 0
    while start < len(data):
        size = rng.choice((1, 2, 3, 100, 5_000, 60_000))
        yield data[start : start + size]
        start += size


def feed(parser: object, pieces: Iterator[bytes]) -> list[bytes]:
    """As a lane does."""
    found: list[bytes] = []
    for piece in pieces:
        replies = parser.feed(piece)  # type: ignore[attr-defined]
        found += replies
        if not replies:
            parser.drop_if_short()  # type: ignore[attr-defined]
    return found


def check(parser: object, replies: list[bytes], dropped: bytes) -> None:
    before = MEMORY.dropped
    for seed in range(30):
        found = feed(parser, cut(b"".join(replies), seed))
        assert len(found) == len(replies), seed
        for had, reply in zip(found, replies, strict=True):
            assert had == reply or (had == dropped and len(reply) >= LARGE), (seed, reply[:40])
        assert dropped in found
        assert parser.is_clean  # type: ignore[attr-defined]
    assert MEMORY.dropped > before


@both("hyper_proxy.storage.resp")
def test_of_redis(module: ModuleType) -> None:
    check(module.RespParser(), REDIS, module.DROPPED)


@both("hyper_proxy.storage.memcache_replies")
def test_of_memcache(module: ModuleType) -> None:
    check(module.MemcacheParser(), MEMCACHE, module.DROPPED)


@both("hyper_proxy.storage.resp")
def test_nothing_is_dropped_while_there_is_memory(module: ModuleType) -> None:
    MEMORY.limit = 1 << 60
    assert feed(module.RespParser(), cut(b"".join(REDIS), 1)) == REDIS
