"""Counters of a node go on when a reload changes how it is talked to, and its old connection goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import redis

from hyper_proxy.build import ROOT
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


def test_a_server_that_a_reload_takes_away_is_gone_with_the_workers_that_knew_it(
    start_fleet: Callable[..., Fleet], redis_nodes: list[Running]
) -> None:
    port, (one, two, *_) = free_port(), redis_nodes
    text = CONFIG.format(port=port, node=one.port, read_ms=1000)
    fleet = start_fleet(text.replace('a"]', f'a", "127.0.0.1:{two.port} b"]'))
    client = redis.Redis(port=port, protocol=2)
    for number in range(20):
        client.get(f"k{number}")
    client.close()
    fleet.write(text.replace("workers = 1", "workers = 2"))
    assert fleet.reload().accepted
    wait_for(lambda: not fleet.stats()["leaving"], "the old worker has ended")
    assert fleet.stats()["instances"]["user"]["nodes"].keys() == {"a"}
    words = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl", "-c", str(fleet.file), "show", "nodes"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["user", "a"]]
