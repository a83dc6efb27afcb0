"""Replicas that are read from, as long as they are fit for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.front.topology.conftest import Proxied, Watched
from tests.kit.wait import wait_for

KEYS = [f"key:{number}" for number in range(100)]


def calls(client: Any, command: str) -> int:
    """How often a server has been asked this."""
    return int(client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])


def reads_at(servers: list[Any]) -> int:
    return sum(calls(server, "get") for server in servers)


def read_all(client: Any) -> None:
    assert [client.get(key) for key in KEYS] == [key.encode() for key in KEYS]


def test_reads_of_a_cluster_go_to_replicas_and_to_masters_when_those_are_gone(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied(replicas=1, more='  reads = "prefer_replica"\n')
    client, cluster = proxy.client(), proxy.cluster
    masters, replicas = [[one.client for one in group] for group in (cluster.masters, cluster.replicas)]
    for key in KEYS:
        client.set(key, key)
    assert client.wait(1, 5000) == 1
    wait_for(lambda: client.get(KEYS[0]) and reads_at(replicas), "replicas are read from")
    at_masters, at_replicas = reads_at(masters), reads_at(replicas)
    read_all(client)
    assert (reads_at(masters) - at_masters, reads_at(replicas) - at_replicas) == (0, len(KEYS))
    assert client.mget(KEYS) == [key.encode() for key in KEYS]
    assert sum(calls(one, "set") for one in masters) == len(KEYS)
    for one in cluster.replicas:
        one.server.kill()
    read_all(client)
    assert reads_at(masters) == at_masters + len(KEYS)


def test_a_replica_that_is_too_far_behind_is_not_read_from(watched: Callable[..., Watched]) -> None:
    """Its master stands still, so nobody knows what it lacks."""
    proxy = watched(more='  reads = "replica"\n  max_lag_s = 1.5\n', down_after_ms=60_000)
    client, group = proxy.client(), proxy.sentinels.watched["alpha"]
    master, replica = group.servers
    client.set("key", "value")
    assert client.wait(1, 5000) == 1
    wait_for(lambda: reads(client) == b"value", "it is read from the replica")
    assert (calls(group.client(master), "get"), calls(group.client(replica), "get")) != (0, 0)
    assert calls(group.client(master), "get") == 0
    wait_for(lambda: lookers(group.client(replica)) == 2, "both workers have looked at it")
    master.freeze()
    try:
        assert client.get("key") == b"value"
        wait_for(lambda: reads(client) is None, "it is too far behind")
        wait_for(lambda: proxy.nodes()[replica.address]["late"] == 2, "both workers say so")
        assert proxy.nodes()[replica.address]["lag_s"] >= 1.5
        with pytest.raises(redis.ResponseError, match="there is no replica that may be read from"):
            client.get("key")
    finally:
        master.thaw()
    wait_for(lambda: reads(client) == b"value", "it is read from again")
    wait_for(lambda: proxy.nodes()[replica.address]["late"] == 0, "and shown so")


def test_a_replica_without_its_master_is_not_read_from(watched: Callable[..., Watched]) -> None:
    proxy = watched(more='  reads = "prefer_replica"\n', down_after_ms=60_000)
    client, group = proxy.client(), proxy.sentinels.watched["alpha"]
    master, replica = (group.client(one) for one in group.servers)
    client.set("key", "old")
    assert client.wait(1, 5000) == 1
    wait_for(lambda: client.get("key") and calls(replica, "get"), "it is read from the replica")
    replica.config_set("replica-serve-stale-data", "no")
    master.config_set("requirepass", "secret")  # the link does not come back
    master.client_kill_filter(_type="replica")
    wait_for(lambda: replica.info("replication")["master_link_status"] == "down", "the link is down")
    assert client.get("key") == b"old"  # of the master, whose connections are logged in
    before = calls(replica, "get")
    wait_for(lambda: proxy.nodes()[group.servers[1].address]["late"] == 2, "both workers know")
    at_replica = calls(replica, "get")
    assert [client.get("key") for _ in range(5)] == [b"old"] * 5
    assert calls(replica, "get") == at_replica >= before


def lookers(client: Any) -> int:
    """How many ask a server how it is, sentinels aside, which have names."""
    return sum(row["cmd"] == "info" and not row["name"] for row in client.client_list())


def reads(client: Any) -> bytes | None:
    """What it reads; None when it may not."""
    try:
        value: bytes = client.get("key")
    except redis.ResponseError:
        return None
    return value
