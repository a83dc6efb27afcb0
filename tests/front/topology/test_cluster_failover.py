"""Masters of a cluster that fail, or hand over."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Any

import redis

from tests.front.topology.cluster_kit import Node, config, slot_of
from tests.front.topology.conftest import Proxied
from tests.front.topology.writers import Writer
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for

KEYS = [f"key:{number}" for number in range(200)]
FAILOVER_S = 15.0  # of a cluster whose node timeout is 1.5 s, on a busy machine


def set_all(client: Any, value: str) -> None:
    for key in KEYS:
        client.set(key, f"{key}={value}")


def works(client: Any, key: str) -> bool:
    """Is it served? An error is a right answer while nobody has it; a wrong value never is."""
    try:
        value = client.get(key)
    except redis.RedisError:
        return False
    assert value == f"{key}=old".encode(), (key, value)
    return True


def is_master(node: Node) -> bool:
    return node.info("INFO replication")["role"] == "master"


def test_a_lost_master_is_replaced_by_its_replica(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied(replicas=1)
    client, cluster = proxy.client(), proxy.cluster
    set_all(client, "old")
    assert client.wait(1, 5000) == 1
    lost, heir = cluster.masters[0], cluster.replicas[0]
    of_lost = [key for key in KEYS if cluster.owner(slot_of(key)) is lost]
    assert of_lost
    lost.server.kill()
    wait_for(lambda: is_master(heir), "the cluster has chosen the replica", FAILOVER_S)
    began = time.monotonic()
    wait_for(lambda: all(works(client, key) for key in KEYS), "all keys are served", FAILOVER_S)
    assert time.monotonic() - began < 5
    set_all(client, "new")
    assert heir.client.get(of_lost[0]) == f"{of_lost[0]}=new".encode()
    lost.server.start()
    wait_for(lambda: not is_master(lost), "it came back as a replica", FAILOVER_S)
    assert [client.get(key) for key in KEYS] == [f"{key}=new".encode() for key in KEYS]


def test_nothing_fails_when_a_master_hands_over(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied(replicas=1)
    cluster, stop = proxy.cluster, Event()
    writers = [Writer(proxy.port, [f"{name}:{number}" for number in range(60)], stop) for name in "ab"]
    for writer in writers:
        writer.start()
    try:
        for replica in cluster.replicas:
            before = min(writer.count for writer in writers)
            replica.ask("CLUSTER FAILOVER")
            wait_for(lambda replica=replica: is_master(replica), "it has taken over", FAILOVER_S)  # type: ignore[misc]
            wait_for(lambda before=before: min(writer.count for writer in writers) > before + 2, "all go on")  # type: ignore[misc]
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [fault for writer in writers for fault in writer.faults] == []
    assert {proxy.client().get(key) for writer in writers for key in writer.keys} == {
        b"%d" % writer.count for writer in writers
    }


def test_a_fleet_starts_while_listed_servers_are_down(proxied: Callable[..., Proxied]) -> None:
    """The first request of a worker may come before anything is known."""
    proxy = proxied()
    set_all(proxy.client(), "old")
    dead = ", ".join(f'"127.0.0.1:{free_port()}"' for _ in range(3))
    port = free_port()
    text = config(f'{dead}, "{proxy.cluster.masters[1].address}"', port)
    fleet = proxy.stack.enter_context(Fleet(text, proxy.cluster.folder))
    client = proxy.stack.enter_context(redis.Redis(port=port))
    assert [client.get(key) for key in KEYS] == [f"{key}=old".encode() for key in KEYS]
    fleet.kill_worker(0)
    others = [proxy.stack.enter_context(redis.Redis(port=port)) for _ in range(8)]
    wait_for(lambda: all(works(other, KEYS[0]) for other in others), "new connections are served")
    assert [other.get(key) for other in others for key in KEYS] == [f"{key}=old".encode() for key in KEYS] * len(others)
