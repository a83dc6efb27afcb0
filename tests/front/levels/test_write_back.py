"""What levels keep above, through a whole fleet: that there is nothing below, and hot copies that never end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
import redis

from hyper_proxy.storage.cache import MARK, NOTHING
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for


class Front:
    """A redis front of one worker over a redis as cache and a file of sqlite; `cache` asks the redis itself."""

    def __init__(self, stack: ExitStack, folder: Path, write_back: str) -> None:
        server = stack.enter_context(redis_server())
        self.port = free_port()
        self.fleet = stack.enter_context(Fleet(
            f'[proxy]\nworkers = 1\ndrain_timeout_s = 1\n[[instance]]\nname = "front"\nprotocol = "redis"\n'
            f'listen = ["127.0.0.1:{self.port}"]\n[instance.write_back]\n{write_back}\n'
            f'[[instance.level]]\nstorage = "redis"\nservers = ["{server.address}"]\n'
            f'timeout = {{ connect_ms = 1000, read_ms = 1000 }}\n'
            + sqlite_level(), folder,
        ))  # fmt: skip
        self.client = stack.enter_context(redis.Redis(port=self.port))
        self.cache = stack.enter_context(redis.Redis(port=server.port))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as one:
        yield one


def test_a_key_that_is_not_there_is_not_looked_for_below_again(stack: ExitStack, tmp_path: Path) -> None:
    front = Front(stack, tmp_path, "negative_ttl = 60")
    assert front.client.mget("a", "b", "c") == [None] * 3
    keys = ["a", "b", "c"]
    wait_for(lambda: front.client.mget(keys) and front.cache.mget(keys) == [NOTHING] * 3, "it is kept")
    front.client.set("c", "1")
    assert front.cache.get("c") == MARK
    wait_for(lambda: front.client.get("c") == b"1" and front.cache.get("c") == b"1", "a copy is kept")
    before = front.cache.info("commandstats")["cmdstat_set"]["calls"]
    for resp in (2, 3):
        with redis.Redis(port=front.port, protocol=resp) as client:
            pipeline = client.pipeline(transaction=False)
            pipeline.get("a").mget("c", "a", "b").get("c").mget("b").get("b")
            assert pipeline.execute() == [None, [b"1", None, None], b"1", [None], None]
    assert front.cache.info("commandstats")["cmdstat_set"]["calls"] == before  # what comes from below would be kept


def test_a_key_that_is_made_is_seen_at_once(stack: ExitStack, tmp_path: Path) -> None:
    front = Front(stack, tmp_path, "negative_ttl = 60")
    for key in map(str, range(20)):
        assert front.client.get(key) is None
        wait_for(lambda key=key: front.client.get(key) is None and front.cache.get(key) == NOTHING, "it is kept")  # type: ignore[misc]
        assert front.client.incr(key) == 1
        assert front.client.get(key) == b"1"


def test_the_copy_of_a_hot_key_does_not_end(stack: ExitStack, tmp_path: Path) -> None:
    front = Front(stack, tmp_path, "ttl = 2\njitter = 0")
    many = front.client.pipeline(transaction=False)

    def ask() -> bool:
        for _ in range(300):
            many.get("hot")
        return many.execute() == [b"v"] * 300

    front.client.set("hot", "v")
    wait_for(lambda: ask() and front.cache.get("hot") == b"v", "a copy is kept, of a key that is hot by now", 15)
    left: list[int] = []

    def is_renewed() -> bool:
        assert ask()
        left.append(front.cache.pttl("hot"))
        return sum(now > before + 500 for before, now in pairwise(left)) >= 3

    wait_for(is_renewed, "it is fetched anew, three times", 20)
    assert min(left) > 0
