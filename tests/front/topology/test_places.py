"""A cluster, or masters under sentinels, in every place: for other protocols, above and below other levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from tests.front.topology.cluster_kit import Cluster, slot_of
from tests.front.topology.sentinel_kit import DOWN_AFTER_MS, Sentinels
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import memcached
from tests.kit.wait import wait_for

KEYS = [f"key:{number}" for number in range(60)]
TIMES = "  timeout = { connect_ms = 500, read_ms = 2000 }\n  backoff = { base_ms = 20, max_ms = 100 }\n"
SQLITE = sqlite_level()
PROTOCOLS = ("redis", "memcache")


class Place:
    """A redis front and a memcache front on the same levels."""

    def __init__(self, stack: ExitStack, folder: Path, levels: str) -> None:
        self.ports = {name: free_port() for name in PROTOCOLS}
        text = "".join(
            f'[[instance]]\nname = "{name}"\nprotocol = "{name}"\nlisten = ["127.0.0.1:{port}"]\n{levels}'
            for name, port in self.ports.items()
        )
        self.fleet = stack.enter_context(Fleet(f"[proxy]\nworkers = 2\n{text}", folder))
        self.redis: Any = stack.enter_context(redis.Redis(port=self.ports["redis"]))
        self.memcache = pymemcache.Client(("127.0.0.1", self.ports["memcache"]), timeout=10, default_noreply=False)
        stack.callback(self.memcache.close)

    def check(self, value: str) -> None:
        """What one front writes all of them read, at once."""
        for number, key in enumerate(KEYS):
            if number % 2:
                assert self.redis.set(key, f"{key}={value}")
            else:
                assert self.memcache.set(key, f"{key}={value}")
        self.read(value)

    def read(self, value: str) -> None:
        """All of it is there, for all fronts."""
        wanted = {key: f"{key}={value}".encode() for key in KEYS}
        assert dict(zip(KEYS, self.redis.mget(KEYS), strict=True)) == wanted
        assert self.memcache.get_many(KEYS) == wanted
        assert [self.redis.get(key) for key in KEYS] == list(wanted.values())


def level(topology: str, servers: str, more: str = "") -> str:
    return (
        f'  [[instance.level]]\n  storage = "redis"\n  topology = "{topology}"\n  servers = [{servers}]\n{more}{TIMES}'
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), 3) as cluster:
        yield cluster


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def move_one(cluster: Cluster) -> None:
    """The slot of a key goes from its master to another one."""
    slot = slot_of(KEYS[7])
    owner = cluster.owner(slot)
    cluster.move(slot, next(node for node in cluster.masters if node is not owner))


def test_other_protocols_over_a_cluster(cluster: Cluster, stack: ExitStack, tmp_path: Path) -> None:
    place = Place(stack, tmp_path, level("cluster", cluster.servers))
    place.check("one")
    move_one(cluster)
    place.read("one")
    place.check("two")
    assert place.memcache.incr("n", 1) is None and place.memcache.set("n", 5) and place.memcache.incr("n", 2) == 7
    assert place.memcache.delete("n") and place.redis.get("n") is None


def test_a_cluster_below_a_cache(cluster: Cluster, stack: ExitStack, tmp_path: Path) -> None:
    cache = stack.enter_context(memcached())
    above = f'  [[instance.level]]\n  storage = "memcache"\n  servers = ["{cache.address} cache"]\n{TIMES}'
    place = Place(stack, tmp_path, above + level("cluster", cluster.servers))
    place.check("one")
    move_one(cluster)
    place.check("two")
    cache.kill()
    place.read("two")
    assert place.redis.dbsize() == sum(node.client.dbsize() for node in cluster.masters) >= len(KEYS)


def test_a_cluster_above_what_knows(cluster: Cluster, stack: ExitStack, tmp_path: Path) -> None:
    place = Place(stack, tmp_path, level("cluster", cluster.servers) + SQLITE)
    place.check("one")
    wait_for(lambda: kept(place, cluster, "one"), "all are kept above")
    move_one(cluster)
    place.read("one")
    place.check("two")
    wait_for(lambda: kept(place, cluster, "two"), "all are kept above anew")
    shown = place.fleet.stats()["instances"]["redis"]["nodes"]
    assert {node.address for node in cluster.masters} <= set(shown)


def copies(cluster: Cluster, value: str) -> int:
    """How many keys have this value in the cluster."""
    client = redis.RedisCluster(host="127.0.0.1", port=cluster.masters[0].port)
    try:
        return sum(f"{key}={value}".encode() in (client.get(key) or b"") for key in KEYS)
    finally:
        client.close()


@pytest.mark.parametrize("below", ["", SQLITE])
def test_sentinels_in_every_place(stack: ExitStack, tmp_path: Path, below: str) -> None:
    sentinels = stack.enter_context(Sentinels(tmp_path, ("alpha",), 1, DOWN_AFTER_MS))
    place = Place(stack, tmp_path, level("sentinel", sentinels.addresses, '  masters = ["alpha"]\n') + below)
    place.check("one")
    new = sentinels.fail_over("alpha")
    wait_for(lambda: sentinels.watched["alpha"].client(new).role()[0] == b"master", "it is the master")
    wait_for(lambda: attempt(place.check), "all is served", 20)


def attempt(check: Callable[[str], None]) -> bool:
    """An error is a right answer while there is no master, and what the old one took before it knew of its end is lost,
    marks of a cache as well: then all is written once more."""
    try:
        check("two")
    except (redis.RedisError, pymemcache.MemcacheError, AssertionError):
        return False
    return True


def kept(place: Place, cluster: Cluster, value: str) -> bool:
    """Are they all kept above, after one more read?"""
    place.read(value)
    return copies(cluster, value) == len(KEYS)
