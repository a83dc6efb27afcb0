"""explain says what a fleet does: keys lie on the node it names, and refusals are the fleet's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing

import pytest
import redis
from pymemcache.client.base import Client as Memcache

from hyper_proxy.config.load import load
from hyper_proxy.config.model import Config
from hyper_proxy.explain import explain
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running

# hash, distribution, hash_tag
PLACEMENTS = (
    ("fnv1a_64", "ketama", "{}"),
    ("md5", "modula", ""),
    ("", "redis_cluster", ""),
    ("", "jump", "[]"),
    ("crc32a", "libmemcached_ketama", ""),
    ("", "mcrouter_ch3", ""),
    ("", "envoy_maglev", ""),
)
KEYS = 60
LEVEL = """
[[instance]]
name = "{name}"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "{storage}"
  hash = "{hash}"
  distribution = "{distribution}"
  hash_tag = "{tag}"
  servers = [{servers}]
  {more}
"""

Front = tuple[Config, str, int]  # the configuration, the name of an instance, its port
Fronts = Callable[[str, list[Running]], list[Front]]


def text(
    name: str, port: int, protocol: str, nodes: list[Running], placement: tuple[str, str, str], storage: str = "",
    more: str = "",
) -> str:
    """One instance over all nodes, with aliases and different weights."""
    weighted = enumerate(zip("abc", nodes, strict=True), 1)
    servers = ", ".join(f'"{node.address}:{weight} {alias}"' for weight, (alias, node) in weighted)
    hash_, distribution, tag = placement
    return LEVEL.format(
        name=name, protocol=protocol, port=port, storage=storage or protocol, hash=hash_, distribution=distribution,
        tag=tag, servers=servers, more=more,
    )  # fmt: skip


def keys(prefix: str) -> list[bytes]:
    """Plain ones, and some with tags of both kinds, of any byte that memcache allows too."""
    draw = random.Random(prefix)
    letters = [byte for byte in range(33, 256) if byte != 127]
    made = [bytes(draw.choices(letters, k=draw.randrange(1, 40))) for _ in range(KEYS)]
    tags = [draw.randbytes(8).hex().encode() for _ in range(12)]
    head = prefix.encode()
    return [b"%b-%d-{%b}[%b]%b" % (head, n, draw.choice(tags), draw.choice(tags), key) for n, key in enumerate(made)]


def named_node(front: Front, words: list[bytes]) -> list[str]:
    """The addresses of all keys of a request."""
    config, name, _ = front
    return [place.server.address for key in explain(config, name, words).keys for place in key.places if place.server]


@pytest.fixture
def fronts(start_fleet: Callable[[str], Fleet]) -> Fronts:
    """`fronts(protocol, nodes)`: a fleet with an instance for each placement."""

    def start(protocol: str, nodes: list[Running]) -> list[Front]:
        ports = [free_port() for _ in PLACEMENTS]
        parts = [text(f"i{n}", ports[n], protocol, nodes, placement) for n, placement in enumerate(PLACEMENTS)]
        fleet = start_fleet("[proxy]\nworkers = 1\n" + "".join(parts))
        config = load(str(fleet.file))
        return [(config, f"i{n}", port) for n, port in enumerate(ports)]

    return start


def test_redis_keys_lie_where_explain_says(fronts: Fronts, redis_nodes: list[Running]) -> None:
    direct = {node.address: redis.Redis(port=node.port) for node in redis_nodes}
    for front in fronts("redis", redis_nodes):
        expected: dict[bytes, str] = {}
        with closing(redis.Redis(port=front[2])) as client:
            for key in keys(front[1]):
                client.set(key, key)
                expected[key] = named_node(front, [b"GET", key])[0]
        for address, node in direct.items():
            held = set(node.keys(f"{front[1]}-*"))
            assert held == {key for key, where in expected.items() if where == address}
        assert len(set(expected.values())) > 1
    for node in direct.values():
        node.close()


def test_redis_requests_of_two_keys_are_refused_when_explain_says(fronts: Fronts, redis_nodes: list[Running]) -> None:
    refusals = 0
    for config, name, port in fronts("redis", redis_nodes):
        mine = keys(name)
        with closing(redis.Redis(port=port)) as client:
            for one, other in zip(mine[:20], mine[20:], strict=False):
                outcome = explain(config, name, [b"SUNION", one, other]).outcome
                try:
                    client.execute_command("SUNION", one, other)
                    error = ""
                except redis.ResponseError as fault:
                    error = f"CROSSSLOT {fault}"  # the client takes the code off
                assert outcome.error == error
                refusals += bool(error)
    assert refusals


def test_a_split_mset_arrives_as_explained(fronts: Fronts, redis_nodes: list[Running]) -> None:
    direct = {node.address: redis.Redis(port=node.port) for node in redis_nodes}
    for config, name, port in fronts("redis", redis_nodes):
        words = [b"MSET", *[word for key in keys(name) for word in (key, b"value of " + key)]]
        with closing(redis.Redis(port=port)) as client:
            client.execute_command(*words)
        sent = explain(config, name, words).outcome.sent
        assert sorted(word for one in sent for word in one.words[1:]) == sorted(words[1:])
        for one in sent:
            assert one.server is not None
            assert direct[one.server.address].mget(one.words[1::2]) == list(one.words[2::2])
    for node in direct.values():
        node.close()


def test_memcache_keys_lie_where_explain_says(fronts: Fronts, memcached_nodes: list[Running]) -> None:
    direct = {node.address: Memcache(("127.0.0.1", node.port), allow_unicode_keys=True) for node in memcached_nodes}
    for front in fronts("memcache", memcached_nodes):
        mine = keys(front[1])
        with closing(Memcache(("127.0.0.1", front[2]), allow_unicode_keys=True)) as client:
            for key in mine:
                assert client.set(key, key, noreply=False)
        expected = dict(zip(mine, named_node(front, [b"get", *mine]), strict=True))
        for address, node in direct.items():
            assert set(node.get_many(mine)) == {key for key, where in expected.items() if where == address}
        assert len(set(expected.values())) > 1
    for node in direct.values():
        node.close()


def test_lushan_keys_are_asked_for_where_and_as_explain_says(
    start_fleet: Callable[[str], Fleet], memcached_nodes: list[Running]
) -> None:
    port = free_port()
    rule = 'lushan_db = { hash = "crc32a", count = 8 }'
    fleet = start_fleet(text("feed", port, "memcache", memcached_nodes, ("", "ketama", ""), "lushan", rule))
    config = load(str(fleet.file))
    mine = [b"plain-%d" % n for n in range(KEYS)]
    direct = {node.address: Memcache(("127.0.0.1", node.port)) for node in memcached_nodes}
    for key in explain(config, "feed", [b"get", *mine]).keys:
        (place,) = key.places
        assert place.server is not None
        direct[place.server.address].set(place.sent, key.key, noreply=False)
    with closing(Memcache(("127.0.0.1", port))) as client:
        assert client.get_many(mine) == {key: key for key in mine}
    for node in direct.values():
        node.close()
