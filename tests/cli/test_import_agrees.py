"""What a real twemproxy stored is found through its imported file: a fleet before the same servers, key by key."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import pytest
import yaml
from pymemcache.client.base import Client as Memcache

from hyper_proxy import hashing
from hyper_proxy.cli.importing import nutcracker as imported
from tests.kit import servers
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.protocol.raw import Raw

KEYS = 150
TWINS = ("s2266", "s591")
"""Names with one ring point in common: every key right below it is on the server that twemproxy sorts first."""
TWIN_POINT = 1193364430
TWIN_ARC = 20_000_000
DOOR = "the_last_to_open:\n  listen: 127.0.0.1:{port}\n  servers:\n   - 127.0.0.1:1:1\n"
"""The pool by which twemproxy is seen to have started: pools open in the order of their sorted names, too."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pool: {0} to {2} become the addresses of the servers in the order of their ports, {x} that of one with an
    unusual name: without its port for memcache, a unix socket for redis.
    """

    distribution: str
    servers: tuple[str, ...]
    twins: bool = False


CASES = {
    "sorted": Case("modula", ("{0}:1", "{1}:1", "{2}:1")),
    "reversed": Case("modula", ("{2}:1", "{1}:1", "{0}:1")),
    "aliases": Case("modula", ("{0}:1 longest", "{1}:1 b", "{2}:1 aa")),
    "case": Case("modula", ("{0}:1 node-b", "{1}:1 node-C", "{2}:1 node_a")),
    "numbers": Case("modula", ("{0}:1 n10", "{1}:1 n9", "{2}:1 n1")),
    "weights": Case("modula", ("{1}:3 ccc", "{0}:1 bb", "{2}:2 a")),
    "weighted": Case("modula", ("{1}:3", "{2}:1", "{0}:2")),
    "some": Case("modula", ("{0}:2", "{1}:1 zz", "{2}:1")),
    "unusual": Case("modula", ("{0}:1", "{x}:2", "{1}:1 m", "{2}:1")),
    "ring": Case("ketama", ("{2}:1", "{0}:3", "{1}:2")),
    "named": Case("ketama", ("{1}:7 longest", "{x}:1", "{0}:2 b", "{2}:1 aa")),
    "twins": Case("ketama", tuple(f"{{{number}}}:1 {name}" for number, name in enumerate(TWINS)), twins=True),
}


def keys_of(name: str, case: Case) -> list[str]:
    """Any keys; for twins those that fall on their common point."""
    draw = random.Random(name)
    keys = (draw.randbytes(8).hex() for _ in count())
    if case.twins:
        value = hashing.build_hash("fnv1a_64").value
        keys = (key for key in keys if 0 <= TWIN_POINT - value(key.encode(), 0, len(key)) < TWIN_ARC)
    return list(islice(keys, KEYS))


def pools(protocol: str, addresses: list[str], odd: str, paths: dict[str, str]) -> str:
    """A twemproxy file with all cases as pools, on these sockets."""
    body = {
        name: {
            "listen": paths[name],
            "redis": protocol == "redis",
            "distribution": case.distribution,
            "servers": [server.format(*addresses, x=odd) for server in case.servers],
        }
        for name, case in CASES.items()
    }
    return yaml.safe_dump(body)


def store(protocol: str, path: str, keys: list[str]) -> None:
    """Through twemproxy."""
    if protocol == "redis":
        with closing(Raw(path)) as raw:
            assert {raw.redis(b"SET", key.encode(), b"x") for key in keys} == {b"+OK\r\n"}
    else:
        with closing(Memcache(f"unix:{path}", default_noreply=False)) as client:
            assert client.set_many(dict.fromkeys(keys, b"x")) == []


def missing(protocol: str, path: str, keys: list[str]) -> list[str]:
    """What the fleet does not find."""
    if protocol == "redis":
        with closing(Raw(path)) as raw:
            return [key for key in keys if raw.redis(b"GET", key.encode()) != b"$1\r\nx\r\n"]
    with closing(Memcache(f"unix:{path}")) as client:
        return [key for key in keys if client.get(key) != b"x"]


def unusual(protocol: str, folder: Path) -> tuple[Running, str]:
    """A server whose name in twemproxy is not its address, and what stands for it in a file."""
    if protocol == "redis":
        path = str(folder / "redis.sock")
        return servers.redis_server(path=path), path
    port = free_port()
    host = f"127.1.{port >> 8}.{port & 255}"  # every process that runs these tests has its own
    return servers.memcached("-l", f"{host}:11211"), f"{host}:11211"


@pytest.mark.parametrize("protocol", ["memcache", "redis"])
def test_every_key_is_found_where_twemproxy_put_it(
    protocol: str,
    redis_nodes: list[Running],
    memcached_nodes: list[Running],
    own: Callable[[Running], Running],
    start_fleet: Callable[[str], Fleet],
    tmp_path: Path,
) -> None:
    nodes = sorted(redis_nodes if protocol == "redis" else memcached_nodes, key=lambda node: node.port)
    server, odd = unusual(protocol, tmp_path)
    own(server)
    paths = {name: str(tmp_path / f"{name}.sock") for name in CASES}
    text = pools(protocol, [node.address for node in nodes], odd, paths)
    keys = {name: keys_of(name, case) for name, case in CASES.items()}
    old = own(servers.nutcracker(text + DOOR, tmp_path))
    for name, path in paths.items():
        store(protocol, path, keys[name])
    old.stop()
    start_fleet(imported(text, "nutcracker.yml"))
    lost = {name: len(missing(protocol, path, keys[name])) for name, path in paths.items()}
    assert lost == dict.fromkeys(CASES, 0)
