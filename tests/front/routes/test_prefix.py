"""prefix: keys belong to the pool of their longest prefix."""

from __future__ import annotations

from collections.abc import Callable

from tests.front.routes.conftest import Routed

SIZES = {"main": 2, "users": 2, "vip": 1}
ROUTE = '{ prefix = { "user:" = "users", "user:vip:" = "vip", "" = "main" } }'
POOL_OF = {"other:1": "main", "user": "main", "user:1": "users", "user:vi": "users", "user:vip:1": "vip"}


def test_a_key_is_in_the_pool_of_its_longest_prefix(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    for key in POOL_OF:
        client.set(key, f"value of {key}")
    for key, pool in POOL_OF.items():
        where = {name: proxy.kept(name, key) for name in SIZES}
        assert where == {name: f"value of {key}".encode() if name == pool else None for name in SIZES}


def test_keys_of_several_pools_come_back_in_one_answer_by_position(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    keys = [f"{prefix}{number}" for number in range(20) for prefix in ("user:", "user:vip:", "item:")]
    values = [f"value of {key}".encode() for key in keys]
    for key, value in zip(keys, values, strict=True):
        client.set(key, value)
    found = client.mget(keys) if proxy.kind == "redis" else [client.get_many(keys).get(key) for key in keys]
    assert found == values


def test_what_asks_every_server_asks_those_of_all_pools(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    for key in POOL_OF:
        client.set(key, "x")
    if proxy.kind == "redis":
        assert client.dbsize() == len(POOL_OF)
        assert sorted(client.scan_iter(count=1)) == sorted(key.encode() for key in POOL_OF)
        client.flushall()
    else:
        assert client.stats()[b"curr_items"] == len(POOL_OF)
        client.flush_all()
    assert [client.get(key) for key in POOL_OF] == [None] * len(POOL_OF)


def test_a_reload_changes_the_route_and_keeps_the_connections(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, '"main"')
    client = proxy.client()
    client.set("user:1", "old")
    proxy.fleet.write(proxy.config(ROUTE))
    assert proxy.fleet.reload().accepted
    assert client.get("user:1") is None
    client.set("user:1", "new")
    assert (proxy.kept("main", "user:1"), proxy.kept("users", "user:1")) == (b"old", b"new")
