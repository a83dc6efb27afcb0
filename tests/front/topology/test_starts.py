"""A worker that starts while nobody can tell it where the servers are goes by what was told before."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from tests.front.topology.cluster_kit import Cluster, config
from tests.front.topology.conftest import Watched
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for

KEYS = [f"key:{number}" for number in range(50)]


def all_served(client: Any) -> bool:
    """An error is a right answer for a moment; a wrong value never is."""
    try:
        values = [client.get(key) for key in KEYS]
    except redis.RedisError:
        return False
    assert values == [key.encode() for key in KEYS]
    return True


def replace_workers(fleet: Fleet) -> None:
    """Others have started in the place of all workers."""
    before = set(fleet.worker_pids())
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: len(set(fleet.worker_pids()) - before) == 2 and fleet.is_ready(), "other workers are there", 20)


def filled(proxy: Watched) -> Any:
    client = proxy.client()
    for key in KEYS:
        client.set(key, key)
    return client


def test_masters_are_where_sentinels_said_before(watched: Callable[..., Watched]) -> None:
    proxy = watched(("alpha", "beta"), more="  reads = 'replica'\n")
    client = filled(proxy)
    for one in proxy.sentinels.sentinels:
        one.kill()
    replace_workers(proxy.fleet)
    wait_for(lambda: all_served(client), "all keys are served", 20)
    client.set(KEYS[0], KEYS[0])
    proxy.fleet.wait_log("topology.recalled")


def test_what_was_known_before_is_only_a_start(watched: Callable[..., Watched]) -> None:
    proxy = watched()
    client = filled(proxy)
    alpha = proxy.sentinels.watched["alpha"]
    for one in proxy.sentinels.sentinels:
        one.kill()
    old, new = alpha.servers
    alpha.client(new).replicaof("NO", "ONE")
    alpha.client(old).replicaof("127.0.0.1", new.port)
    wait_for(lambda: alpha.is_linked(old), "the old master follows the new one", 20)
    replace_workers(proxy.fleet)
    assert not all_served(client), "a server that is no master any more is not taken for one"
    for one in proxy.sentinels.sentinels:
        one.start()
    wait_for(lambda: all_served(client), "the sentinels are believed", 30)
    client.set("more", "x")
    assert alpha.client(new).get("more") == b"x"


def test_a_cluster_is_asked_where_its_servers_were(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(tmp_path, 3, 1))
        port = free_port()
        seed = f'"{cluster.replicas[0].address}"'
        fleet = stack.enter_context(Fleet(config(seed, port, ""), tmp_path))
        client = stack.enter_context(redis.Redis(port=port))
        wait_for(lambda: all(set_one(client, key) for key in KEYS), "it is served")
        cluster.replicas[0].server.kill()
        replace_workers(fleet)
        wait_for(lambda: all_served(client), "all keys are served", 20)


def set_one(client: Any, key: str) -> bool:
    return bool(client.set(key, key))
