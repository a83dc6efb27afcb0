"""class: reads to one pool, all other commands to another."""

from __future__ import annotations

from collections.abc import Callable

from tests.front.routes.conftest import Routed

ROUTE = '{ class = { read = "copies", write = "main" } }'


def test_reads_and_writes_go_to_their_own_pools(routed: Callable[..., Routed]) -> None:
    proxy = routed({"main": 1, "copies": 2}, ROUTE)
    client = proxy.client()
    client.set("key", "written")
    assert (proxy.kept("main", "key"), proxy.kept("copies", "key")) == (b"written", None)
    for server in proxy.pools["copies"]:
        proxy.to(server.port).set("key", "copied")
    assert client.get("key") == b"copied"
    client.delete("key")
    assert (proxy.kept("main", "key"), client.get("key")) == (None, b"copied")


def test_a_transaction_is_where_writes_go(routed: Callable[..., Routed], kind: str) -> None:
    if kind == "memcache":
        return  # has none
    proxy = routed({"main": 1, "copies": 1}, ROUTE)
    with proxy.client().pipeline(transaction=True) as pipeline:
        assert pipeline.set("key", "1").get("key").incr("key").execute() == [True, b"1", 2]
    assert (proxy.kept("main", "key"), proxy.kept("copies", "key")) == (b"2", None)
