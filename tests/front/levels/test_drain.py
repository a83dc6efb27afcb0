"""Copies in a cache that could not be told of a write, when the worker that knows it ends."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for

CONFIG = """[proxy]
workers = 1
drain_timeout_s = {drain}
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["{cache}"]
"""


@pytest.mark.parametrize(("drain", "is_told"), [(20, True), (1, False)])
def test_a_drain_waits_for_a_cache_that_takes_no_writes(tmp_path: Path, drain: int, is_told: bool) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(redis_server())
        cache = stack.enter_context(redis.Redis(port=server.port))
        port = free_port()
        config = CONFIG.format(drain=drain, port=port, cache=server.address) + sqlite_level()
        fleet = stack.enter_context(Fleet(config, tmp_path))
        client = stack.enter_context(redis.Redis(port=port))
        client.set("key", "old")
        wait_for(lambda: client.get("key") and cache.get("key") == b"old", "a copy is kept", 15)
        cache.config_set("maxmemory", 1)  # every write is refused, every read answered
        client.set("key", "new")
        client.close()
        fleet.send_signal(15)
        fleet.wait_log("fleet.draining")
        if is_told:
            cache.config_set("maxmemory", 0)
        assert fleet.process.wait(drain + 10) == 0
        assert (cache.get("key") == b"old") is not is_told
        assert ("write_back.marks_lost keys=1" in fleet.read_log()) is not is_told
