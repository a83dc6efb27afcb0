"""Multi-key commands over three nodes answer as one server does, for any keys."""

from __future__ import annotations

import random

from tests.front.redis.conftest import Proxy, converse, encode
from tests.kit.servers import Running

COUNTS = [1, 2, 3, 5, 10, 100, 500, 2000]


def random_key(rng: random.Random) -> bytes:
    """Short ones repeat; some are empty, binary, look like protocol, or carry a hash tag."""
    return rng.choice(
        [
            lambda: b"",
            lambda: b"k%d" % rng.randrange(50),
            lambda: b"long" * rng.randrange(1, 30) + b"%d" % rng.randrange(1000),
            lambda: rng.randbytes(rng.randrange(1, 40)),
            lambda: b"\r\n" * rng.randrange(1, 4),
            lambda: b"$3\r\n%d\r\n" % rng.randrange(1000),
            lambda: b"*2\r\n",
            lambda: b"{tag%d}%d" % (rng.randrange(5), rng.randrange(100)),
            lambda: b"{}%d" % rng.randrange(100),
        ]
    )()


def fanned(rng: random.Random) -> bytes:
    """One multi-key request."""
    keys = [random_key(rng) for _ in range(rng.choice(COUNTS))]
    verb = rng.choice([b"MGET", b"mget", b"MSET", b"MSET", b"DEL", b"EXISTS", b"TOUCH", b"UNLINK", b"eXiStS"])
    if verb == b"MSET":
        values = [rng.choice([b"", b"\r\n", rng.randbytes(rng.randrange(100)), b"x" * 5000]) for _ in keys]
        return encode(verb, *(word for pair in zip(keys, values, strict=True) for word in pair))
    if rng.random() < 0.2:
        keys = [random_key(rng)] * len(keys)
    return encode(verb, *keys)


def test_random_requests_have_the_answers_of_one_server(both_proxies: Proxy, oracle: Running) -> None:
    rng = random.Random(7)
    for _ in range(5):
        data = b"".join(fanned(rng) for _ in range(60))
        assert converse(both_proxies.port, data) == converse(oracle.port, data)


def test_values_that_are_no_strings_are_nil(both_proxies: Proxy, oracle: Running) -> None:
    data = encode("LPUSH", "list", "a") + encode("SET", "s", "1") + encode("HSET", "hash", "f", "v")
    data += encode("MGET", "list", "s", "nothing", "hash", *range(30)) + encode(
        "DEL", "list", "s", "hash", "hash", "none"
    )
    assert converse(both_proxies.port, data) == converse(oracle.port, data)


def test_resp3_nils_are_merged(both_proxies: Proxy) -> None:
    connection = both_proxies.raw()
    connection.redis(b"HELLO", b"3")
    keys = [b"key%d" % number for number in range(20)]
    assert connection.redis(b"MGET", *keys) == b"*20\r\n" + b"_\r\n" * 20
    connection.redis(b"SET", keys[3], b"x")
    assert connection.redis(b"MGET", *keys) == b"*20\r\n" + b"_\r\n" * 3 + b"$1\r\nx\r\n" + b"_\r\n" * 16


def test_every_node_gets_one_request_and_only_its_own_keys(proxy: Proxy, redis_nodes: list[Running]) -> None:
    client = proxy.client()
    keys = [f"key{number}" for number in range(300)]
    client.mset(dict.fromkeys(keys, "x"))
    for shard, node in enumerate(redis_nodes):
        expected = sum(proxy.shard(key) == shard for key in keys)
        assert 0 < expected < 300
        assert node.ask(b"DBSIZE\r\n") == b":%d\r\n" % expected
        assert node.ask(b"CONFIG RESETSTAT\r\n") == b"+OK\r\n"
    client.mget(keys)
    for node in redis_nodes:
        assert b"cmdstat_mget:calls=1," in node.ask(b"INFO commandstats\r\n", b"cmdstat_mget")
