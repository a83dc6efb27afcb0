"""Counters of a node go on when a reload changes how it is talked to, and its old connection goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{node} a"]
  timeout = {{ read_ms = {read_ms} }}
"""


def node_stats(fleet: Fleet) -> dict[str, Any]:
    return dict(fleet.stats()["instances"]["user"]["nodes"]["a"])


def test_counters_of_a_node_go_on_over_a_reload(
    start_fleet: Callable[..., Fleet], redis_nodes: list[Running]
) -> None:
    port, node = free_port(), redis_nodes[0].port
    fleet = start_fleet(CONFIG.format(port=port, node=node, read_ms=1000))
    client = redis.Redis(port=port, protocol=2)
    for _ in range(10):
        client.get("k")
    assert node_stats(fleet)["requests"] == 10
    fleet.write(CONFIG.format(port=port, node=node, read_ms=1001))
    assert fleet.reload().accepted
    for _ in range(5):
        client.get("k")
    stats = node_stats(fleet)
    assert (stats["requests"], stats["latency_us"]["count"], stats["connects"]) == (15, 15, 2)
    wait_for(lambda: node_stats(fleet)["connections"] == 1, "the connection of the old node is closed")
