"""A connection of one client's own is used again by the next one, under its own deadline."""

from __future__ import annotations

from collections.abc import Callable

import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [instance.limits]
  idle_timeout_s = 0.5
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{node} a"]
  timeout = {{ read_ms = 300 }}
"""


def test_blpop_after_exec_waits_as_long_as_it_says(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running]
) -> None:
    port = free_port()
    fleet = start_fleet(CONFIG.format(port=port, node=redis_nodes[0].port))
    client = redis.Redis(port=port, protocol=2, single_connection_client=True)
    pipe = client.pipeline()
    pipe.set("k", 1)
    assert pipe.execute() == [True]
    assert client.blpop("nothing", timeout=2) is None
    # Waiting for an answer is no silence: the client is still there, and leaves only when it says nothing for so long.
    assert client.get("k") == b"1"
    stats = fleet.stats()["instances"]["user"]
    assert (stats["errors"], stats["nodes"]["a"]["errors"]) == ({}, {})
    wait_for(lambda: fleet.stats()["instances"]["user"]["clients"] == 0, "the silent client is closed")
