"""Hot keys, large values, and what each server was asked for: through a real fleet."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pymemcache
import redis

from hyper_proxy.common.keyname import digest
from tests.kit.fleet import COMMAND, ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running

CONFIG = """
[proxy]
workers = {workers}
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "{protocol}"
  servers = [{servers}]
"""
SHOW = """
[admin]
listen = "127.0.0.1:{admin}"
show_keys = true
"""
HOT, BIG, MIDDLE = b"hot:key", b"big:key", b"middle:key"
ROUNDS = 60
StartFleet = Callable[[str], Fleet]


def config(port: int, nodes: list[Running], protocol: str = "redis", workers: int = 1) -> str:
    servers = ", ".join(f'"{node.address}:1 n{number}"' for number, node in enumerate(nodes))
    return CONFIG.format(port=port, servers=servers, protocol=protocol, workers=workers)


def instance(fleet: Fleet) -> dict[str, Any]:
    return dict(fleet.stats()["instances"]["user"])


def by_class(fleet: Fleet) -> dict[str, int]:
    """The sum over all servers."""
    nodes = instance(fleet)["nodes"].values()
    return {name: sum(node["by_class"][name] for node in nodes) for name in ("read", "idempotent", "write", "admin")}


def test_hot_keys_and_large_values_of_all_workers(redis_nodes: list[Running], start_fleet: StartFleet) -> None:
    port = free_port()
    text = config(port, redis_nodes, workers=2)
    fleet = start_fleet(text)
    clients = [redis.Redis(port=port, protocol=2) for _ in range(8)]
    clients[0].mset({BIG: b"x" * 50_000, MIDDLE: b"x" * 20_000})
    for number in range(ROUNDS):
        for index, client in enumerate(clients):
            with client.pipeline(transaction=False) as pipe:
                for _ in range(10):
                    pipe.get(HOT)
                pipe.get(f"cold:{number:08}:{index}")
                pipe.get(BIG)
                pipe.execute()
            for _ in range(3):
                client.mget([MIDDLE, BIG, "nothing"])
            assert client.mget([f"many:{key}" for key in range(40)]) == [None] * 40
    stats = instance(fleet)
    hottest, count = stats["hot_keys"][0]
    assert hottest == digest(HOT)
    assert 0.6 < count / (8 * ROUNDS * 10) < 1.5
    assert stats["big_keys"][:2] == [[digest(BIG), 50_000], [digest(MIDDLE), 20_000]]
    assert not [key for key, _ in stats["hot_keys"] if key.endswith(f":{len('cold:00000000:0')}")], "met once"

    fleet.write(text + SHOW.format(admin=fleet.admin_port))
    assert fleet.reload().accepted
    stats = instance(fleet)
    assert stats["hot_keys"][0][0] == "hot:key"
    assert [row[0] for row in stats["big_keys"][:2]] == ["big:key", "middle:key"]


def test_explain_tells_the_digest_of_a_key(redis_nodes: list[Running], start_fleet: StartFleet) -> None:
    fleet = start_fleet(config(free_port(), redis_nodes))
    asked = [*COMMAND, "explain", "-c", str(fleet.file), "--json", "user", "GET", "hot:key"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["keys"][0]["digest"] == digest(HOT)


def test_memcache_keys(memcached_nodes: list[Running], start_fleet: StartFleet) -> None:
    port = free_port()
    fleet = start_fleet(config(port, memcached_nodes, "memcache"))
    client = pymemcache.Client(("127.0.0.1", port))
    for _ in range(ROUNDS):
        client.set(BIG.decode(), b"x" * 50_000, noreply=False)
        client.get_many([MIDDLE.decode(), BIG.decode()])
        for _ in range(20):
            client.get(HOT.decode())
            client.get(BIG.decode())
    stats = instance(fleet)
    assert {key for key, _ in stats["hot_keys"][:2]} == {digest(HOT), digest(BIG)}
    assert stats["big_keys"][0] == [digest(BIG), 50_000]
    sent = by_class(fleet)
    assert (sent["idempotent"], sent["write"], sent["admin"]) == (ROUNDS, 0, 0)
    assert ROUNDS * 41 <= sent["read"] <= ROUNDS * 42  # a retrieval of two keys is asked of one server or of two


def test_requests_of_a_server_by_class(redis_nodes: list[Running], start_fleet: StartFleet) -> None:
    port = free_port()
    fleet = start_fleet(config(port, redis_nodes[:1]))
    client = redis.Redis(port=port, protocol=2)
    for _ in range(3):
        client.get("k")
    client.mget(["a", "b"])  # one server: one request
    client.set("k", 1)
    client.incr("k")
    client.dbsize()
    with client.pipeline() as pipe:
        pipe.incr("k")
        pipe.get("k")
        pipe.execute()  # with MULTI and EXEC
    client.blpop(["none"], timeout=0.01)
    assert by_class(fleet) == {"read": 3 + 1 + 1 + 1, "idempotent": 1, "write": 1 + 1 + 1, "admin": 2}
    assert instance(fleet)["nodes"]["n0"]["requests"] == 12
    status, metrics = fleet.http("GET", "/metrics")
    assert status == 200
    assert 'hyper_proxy_node_by_class_total{class="write",instance="user",node="n0"} 3.0' in metrics.decode()
    other = 'storage = "redis"\ntimeout = {read_ms = 999}'
    fleet.write(config(port, redis_nodes[:1]).replace('storage = "redis"', other))
    assert fleet.reload().accepted
    client.get("k")
    assert by_class(fleet)["read"] == 7


def test_each_request_is_counted_once_by_its_class(redis_nodes: list[Running], start_fleet: StartFleet) -> None:
    port = free_port()
    fleet = start_fleet(config(port, redis_nodes))
    spread = [f"k{number}" for number in range(20)]
    asked = [
        ("write", ["RENAME", "k0", "k1"], ["RENAME", "k0", "k2"], ["RENAME", "k0", "k3"]),  # some on two servers
        ("write", ["FLUSHALL"], ["INCRBY", "k", "x"]),  # the one is not allowed
        ("read", ["GET", "k"], ["SINTER", *spread], ["MGET", *spread], ["GET", "k" * 70_000]),
        ("idempotent", ["SET", "k", "v"], ["DEL", *spread], ["MSET", "k", "v", "l", "v"]),
        ("admin", ["GET"], ["NONSENSE"], ["PING"], ["MULTI"], ["WATCH", "k"], ["NONSENSE"], ["EXEC"]),
    ]
    with redis.Redis(port=port, protocol=2, single_connection_client=True) as client:
        client.ping()
        for klass, *requests in asked:
            before = instance(fleet)["requests"]
            for words in requests:
                try:
                    client.execute_command(*words)
                except redis.ResponseError:
                    continue
            after = instance(fleet)["requests"]
            added = {name: after[name] - before[name] for name in after}
            assert added == {**dict.fromkeys(after, 0), klass: len(requests)}
