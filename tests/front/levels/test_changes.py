"""A reload that puts a level above others, or takes one away, while writes are owed to a cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from hyper_proxy.config.model import Level, Server
from hyper_proxy.tunnel.succession import successors
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server
from tests.kit.wait import wait_for

HEAD = """[proxy]
workers = 2
drain_timeout_s = 1
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
"""
LEVEL = """  [[instance.level]]
  storage = "{storage}"
  servers = ["{server}"]
"""


def level(storage: str, *ports: int) -> Level:
    """A level of servers at these ports."""
    return Level(storage, tuple(Server("127.0.0.1", port) for port in ports))


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ([level("redis", 1)], [level("memcache", 2), level("redis", 1)], {0: 1}),
        ([level("redis", 1)], [level("redis", 2), level("redis", 1)], {0: 1}),
        ([level("redis", 1, 2)], [level("redis", 2), level("redis", 2, 1)], {0: 1}),
        ([level("redis", 1)], [level("redis", 2)], {0: 0}),
        ([level("redis", 1)], [level("memcache", 1)], {}),
        ([level("redis", 1), level("redis", 2)], [level("redis", 2), level("redis", 1)], {0: 1, 1: 0}),
        ([level("redis", 1), level("memcache", 2), level("redis", 3)], [level("redis", 3)], {2: 0}),
    ],
)
def test_a_level_goes_on_with_its_servers_wherever_it_stands(
    before: list[Level], after: list[Level], wanted: dict[int, int]
) -> None:
    assert successors(before, after) == wanted
    assert successors(after, before) == {new: old for old, new in wanted.items()}


@pytest.mark.parametrize("start", [memcached, redis_server])
def test_what_is_owed_to_a_cache_is_owed_when_another_level_is_put_above(
    tmp_path: Path, start: Callable[[], Running]
) -> None:
    with ExitStack() as stack:
        cache, other = stack.enter_context(redis_server()), stack.enter_context(start())
        kept = stack.enter_context(redis.Redis(port=cache.port))
        head = HEAD.format(port=(port := free_port()))
        levels = LEVEL.format(storage="redis", server=cache.address) + sqlite_level()
        fleet = stack.enter_context(Fleet(head + levels, tmp_path))
        client = stack.enter_context(redis.Redis(port=port))
        client.set("key", "old")
        wait_for(lambda: client.get("key") == b"old" and kept.get("key") == b"old", "a copy is kept", 15)
        kept.config_set("maxmemory", 1)  # every write is refused, every read answered
        client.set("key", "new")
        storage = "memcache" if start is memcached else "redis"
        fleet.write(head + LEVEL.format(storage=storage, server=other.address) + levels)
        assert fleet.reload().accepted
        kept.config_set("maxmemory", 0)
        wait_for(lambda: kept.get("key") != b"old", "the cache is told of the write")
        wait_for(lambda: client.get("key") == b"new", "nobody has the old value any more")
