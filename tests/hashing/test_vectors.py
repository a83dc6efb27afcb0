"""Every row of the vector files: twemproxy, libmemcached, redis cluster, Codis, jump, Envoy."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from hyper_proxy.config.model import Server
from tests.hashing.cases import hash_value, key_of, load, numbered, servers, shard

TWEMPROXY = load("twemproxy")["pools"]
LIBMEMCACHED = load("libmemcached")
RINGS = load("libmemcached_rings")["rings"]
JUMP = load("jump")
ENVOY = load("envoy")

# The distributions of libmemcached.json in our words: hash, distribution, which list of servers.
LIBMEMCACHED_NAMES = {
    "ketama_weighted": ("", "libmemcached_ketama_weighted", "servers_weighted"),
    "consistent default hash": ("", "libmemcached_ketama", "servers"),
    "modula default": ("", "libmemcached_modula", "servers"),
    "modula crc": ("crc32", "libmemcached_modula", "servers"),
}


def pool_servers(pool: dict[str, Any]) -> list[Server]:
    """The servers of a twemproxy pool."""
    found = []
    for row in pool["servers"]:
        host, _, port = row["address"].rpartition(":")
        found.append(Server(host=host, port=int(port), weight=row["weight"], name=row["name"] or ""))
    return found


@pytest.mark.parametrize("pool", TWEMPROXY, ids=[pool["name"] for pool in TWEMPROXY])
def test_twemproxy_pool(hashing: ModuleType, pool: dict[str, Any]) -> None:
    listed = pool_servers(pool)
    assert [hashing.ring_name(server) for server in listed] == [row["ring_name"] for row in pool["servers"]]
    placement = hashing.build(pool["hash"], pool["distribution"], pool["hash_tag"] or "", listed)
    for row in pool["vectors"]:
        told = placement.explain(key_of(row))
        assert (told["hash"], told["shard"]) == (row["hash_uint32"], row["server_index"]), row
        assert shard(placement, key_of(row)) == row["server_index"], row
    if "points_per_server" in pool:
        owners = [owner for _, owner in placement.ring()]
        assert [owners.count(index) for index in range(len(listed))] == pool["points_per_server"]


@pytest.mark.parametrize("name", sorted(set(LIBMEMCACHED["hash_vectors"]) - {"hsieh"}))
def test_libmemcached_hash(hashing: ModuleType, name: str) -> None:
    for row in LIBMEMCACHED["hash_vectors"][name]:
        assert hash_value(hashing, name, key_of(row)) == row["value"], row


def test_libmemcached_of_debian_has_no_hsieh_so_ours_is_that_of_twemproxy(hashing: ModuleType) -> None:
    for row in LIBMEMCACHED["hash_vectors"]["hsieh"]:
        assert row["value"] == 0
        assert hash_value(hashing, "hsieh", key_of(row)) != 0


@pytest.mark.parametrize("name", LIBMEMCACHED["distribution_vectors"])
def test_libmemcached_distribution(hashing: ModuleType, name: str) -> None:
    hash, distribution, listed = LIBMEMCACHED_NAMES[name]
    nodes = [Server(host=host, port=port, weight=weight) for host, port, weight in LIBMEMCACHED[listed]]
    placement = hashing.build(hash, distribution, "", nodes)
    group = LIBMEMCACHED["distribution_vectors"][name]
    for row in group["vectors"]:
        assert shard(placement, key_of(row)) == row["index"], row
    if "points" in group:
        owners = [owner for _, owner in placement.ring()]
        assert [owners.count(index) for index in range(len(nodes))] == group["points"]


@pytest.mark.parametrize("ring", RINGS, ids=[ring["name"] for ring in RINGS])
def test_libmemcached_ring(hashing: ModuleType, ring: dict[str, Any]) -> None:
    nodes = [Server(**row) for row in ring["servers"]]
    placement = hashing.build(ring["hash"], ring["distribution"], "", nodes)
    for row in ring["vectors"]:
        assert shard(placement, key_of(row)) == row["index"], row


@pytest.mark.parametrize(("name", "distribution"), [("redis_cluster_slots", "redis_cluster"), ("codis_slots", "codis")])
def test_slots(hashing: ModuleType, name: str, distribution: str) -> None:
    count = {"redis_cluster": 16384, "codis": 1024}[distribution]
    placement = hashing.build("", distribution, "", numbered(3))
    fine = hashing.build("", distribution, "", numbered(count))  # one server per slot
    for row in load(name)["vectors"]:
        told = placement.explain(key_of(row))
        assert told["hash"] % count == row["slot"], row
        assert shard(fine, key_of(row)) == row["slot"], row


def test_jump_of_numbers(hashing: ModuleType) -> None:
    for row in JUMP["vectors"]:
        placement = hashing.build("xxh64", "jump", "", numbered(row["buckets"]))
        assert placement.shard_of(int(row["key_uint64"])) == row["index"], row


def test_jump_of_keys(hashing: ModuleType) -> None:
    for row in JUMP["key_string"]:
        placement = hashing.build("xxh64", "jump", "", numbered(row["buckets"]))
        assert hash_value(hashing, "xxh64", key_of(row)) == int(row["xxh64"]), row
        assert shard(placement, key_of(row)) == row["index"], row


@pytest.mark.parametrize("case", ENVOY["maglev_published"], ids=["addresses", "aliases"])
def test_envoy_maglev_table(hashing: ModuleType, case: dict[str, Any]) -> None:
    placement = hashing.build("", f"envoy_maglev-{case['table_size']}", "", servers(case["hosts"]))
    assert [placement.shard_of(cell) for cell in range(case["table_size"])] == case["table"]


@pytest.mark.parametrize(
    ("case", "distribution"),
    [("ring_published", "envoy_ring_hash"), ("ring_murmur_published", "envoy_ring_hash_murmur")],
)
def test_envoy_ring(hashing: ModuleType, case: str, distribution: str) -> None:
    published = ENVOY[case]
    name = f"{distribution}-{published['minimum_ring_size']}"
    placement = hashing.build("", name, "", servers(published["hosts"]))
    assert placement.ring() == [(int(point), owner) for point, owner in published["ring"]]


def test_envoy_keys(hashing: ModuleType) -> None:
    for row in ENVOY["key_placement"]:
        assert row["hashtagging"] is False
        for distribution, expected in (("envoy_maglev", "maglev_65537"), ("envoy_ring_hash-1024", "ring_hash_1024")):
            placement = hashing.build("", distribution, "", servers(row["hosts"]))
            assert placement.explain(key_of(row))["hash"] == int(row["key_hash"]), row
            assert shard(placement, key_of(row)) == row[expected], row
