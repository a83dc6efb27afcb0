"""What a real fleet reports is what the table says, and adds up over its workers."""

from __future__ import annotations

from collections.abc import Callable

import redis

from hyper_proxy.stats.table import INSTANCE, NODE, TABLE, WORKER, metric_name, of
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 2
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{nodes}]
"""
CLIENTS, READS = 20, 5


def test_counters_of_all_workers_add_up(redis_nodes: list[Running], start_fleet: Callable[[str], Fleet]) -> None:
    port = free_port()
    nodes = ", ".join(f'"{node.address}:1"' for node in redis_nodes)
    fleet = start_fleet(CONFIG.format(port=port, nodes=nodes))
    clients = [redis.Redis(port=port, protocol=2) for _ in range(CLIENTS)]
    for client in clients:
        for number in range(READS):
            assert client.get(f"key{number}") is None
    stats = fleet.stats()
    user = stats["instances"]["user"]
    assert user["requests"]["read"] == user["latency_us"]["read"]["count"] == CLIENTS * READS
    assert user["clients"] == CLIENTS
    assert sum(node["latency_us"]["count"] for node in user["nodes"].values()) >= CLIENTS * READS
    assert sum(worker["connections"] for worker in stats["workers"]) == CLIENTS
    assert 0 < user["latency_us"]["read"]["p50"] <= user["latency_us"]["read"]["max"]

    assert user.keys() - {"nodes", "hot_keys", "big_keys"} == {row.name for row in of(INSTANCE)}
    assert all(node.keys() == {row.name for row in of(NODE)} for node in user["nodes"].values())
    assert all(worker.keys() >= {row.name for row in of(WORKER)} for worker in stats["workers"])
    status, metrics = fleet.http("GET", "/metrics")
    assert status == 200
    missing = [row.name for row in TABLE if f"# HELP {metric_name(row)} " not in metrics.decode()]
    assert not missing

    for client in clients:
        client.close()
    wait_for(lambda: fleet.stats()["instances"]["user"]["clients"] == 0, "all clients are gone")
    assert fleet.stats()["instances"]["user"]["requests"]["read"] == CLIENTS * READS
