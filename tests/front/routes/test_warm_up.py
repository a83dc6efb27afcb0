"""warm_up: what a cold cache misses is fetched from a warm one."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.front.routes.conftest import Routed

SIZES = {"main": 2, "warm": 2}
ROUTE = '{ warm_up = "warm", of = "main" }'
LIVES_S = 1000


def _spread(proxy: Routed, keys: list[str]) -> None:
    """Put keys where the warm pool has them: through a fleet of its own it would be the same placement."""
    for key in keys:
        for server in proxy.pools["warm"]:
            proxy.to(server.port).set(key, f"value of {key}", LIVES_S)


def test_what_is_missed_is_fetched_and_kept_with_its_time(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    _spread(proxy, ["key"])
    assert client.get("key") == b"value of key" == proxy.kept("main", "key")
    if proxy.kind == "redis":
        left = max(proxy.to(server.port).ttl("key") for server in proxy.pools["main"])
    else:
        asked = [server.ask(b"mg key t\r\n") for server in proxy.pools["main"]]
        left = max(int(answer.split(b" t")[1]) for answer in asked if answer.startswith(b"HD"))
    assert LIVES_S - 10 <= left <= LIVES_S
    assert client.get("nowhere") is None
    rows = proxy.fleet.stats()["instances"]["shop"]["nodes"]
    assert sum(row["warmed"] for row in rows.values()) == rows["main0"]["warmed"] + rows["main1"]["warmed"] == 1


def test_several_keys_of_which_some_are_there(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    keys = [f"key{number}" for number in range(20)]
    _spread(proxy, keys[::2])
    for key in keys[1::4]:
        client.set(key, f"value of {key}")
    expected = [f"value of {key}".encode() if key in keys[::2] + keys[1::4] else None for key in keys]
    found = client.mget(keys) if proxy.kind == "redis" else [client.get_many(keys).get(key) for key in keys]
    assert found == expected
    assert all(proxy.kept("main", key) == value for key, value in zip(keys, expected, strict=True))


def test_writes_go_to_the_cold_one_and_are_not_replaced(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    _spread(proxy, ["key"])
    client.set("key", "new")
    assert (client.get("key"), proxy.kept("main", "key")) == (b"new", b"new")
    assert proxy.kept("warm", "key") == b"value of key"


def test_what_is_deleted_does_not_come_back(routed: Callable[..., Routed], kind: str) -> None:
    proxy = routed({"main": 2, "warm": 1}, ROUTE)
    client = proxy.client()
    keys = [f"key{number}" for number in range(6)]
    _spread(proxy, keys)
    fetched, unknown = keys[:3], keys[3:]
    assert [client.get(key) for key in fetched] == [f"value of {key}".encode() for key in fetched]
    if kind == "redis":
        assert (client.delete(*fetched), client.unlink(unknown[0]), client.delete(unknown[1])) == (3, 1, 1)
        assert client.getdel(unknown[2]) == b"value of key5"
    else:
        assert [client.delete(key) for key in keys] == [True] * len(keys)
    for other in (proxy.client() for _ in range(6)):  # of both workers
        assert [other.get(key) for key in keys] == [None] * len(keys)
    assert not client.delete(keys[0])
    proxy.pools["warm"][0].kill()
    client.set("key", "value")
    assert client.delete("key")
    assert client.get("key") is None


def test_other_types_of_redis_come_whole(routed: Callable[..., Routed], kind: str) -> None:
    if kind == "memcache":
        return  # has one type
    proxy = routed({"main": 1, "warm": 1}, ROUTE)
    client, warm = proxy.client(), proxy.to(proxy.pools["warm"][0].port)
    warm.hset("hash", mapping={"a": 1, "b": 2})
    warm.rpush("list", *"abc")
    warm.zadd("sorted", {"x": 1.5})
    assert client.hgetall("hash") == {b"a": b"1", b"b": b"2"}
    assert client.lrange("list", 0, -1) == [b"a", b"b", b"c"]
    assert client.zscore("sorted", "x") == 1.5
    assert client.ttl("hash") == -1


def test_a_warm_one_that_is_gone_has_nothing(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    for server in proxy.pools["warm"]:
        server.kill()
    assert client.get("key") is None
    client.set("key", "value")
    assert client.get("key") == b"value"


@pytest.mark.parametrize("kind", ["memcache"], indirect=True)
def test_a_key_may_have_any_byte_that_memcached_takes(routed: Callable[..., Routed], kind: str) -> None:
    proxy = routed({"main": 1, "warm": 1}, ROUTE)
    assert proxy.pools["warm"][0].ask(b"set a\tb 0 0 4\r\nwarm\r\n") == b"STORED\r\n"
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as client, client.makefile("rb") as answers:
        client.sendall(b"get a\tb\r\n")
        assert answers.readline() == b"VALUE a\tb 0 4\r\n"
