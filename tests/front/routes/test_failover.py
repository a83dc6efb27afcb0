"""failover: where a pool fails, the next one is asked."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import redis

from tests.front.routes.conftest import READ_MS, Routed
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.wait import wait_for

SIZES = {"main": 1, "spare": 1}
ROUTE = '{ failover = ["main", "spare"] }'


def test_the_next_pool_serves_while_the_first_is_down(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    client.set("key", "first")
    assert (proxy.kept("main", "key"), proxy.kept("spare", "key")) == (b"first", None)
    proxy.pools["main"][0].kill()
    assert client.get("key") is None
    client.set("key", "second")
    assert client.get("key") == b"second" == proxy.kept("spare", "key")
    rows = proxy.fleet.stats()["instances"]["shop"]["nodes"]
    assert {name: row["handed_on"] for name, row in rows.items()} == {"main0": 0, "spare0": 3}


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_only_what_goes_to_one_server_for_a_key_is_handed_on(routed: Callable[..., Routed], kind: str) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    assert (client.dbsize(), client.scan(0)) == (0, (0, []))
    proxy.pools["main"][0].kill()
    assert client.set("key", "1") and client.mget("key") == [b"1"]
    for call in client.dbsize, lambda: client.scan(0), client.pipeline(transaction=True).set("a", "1").execute:
        with pytest.raises(redis.RedisError, match="main0"):
            call()


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_the_page_does_not_alarm_while_no_client_gets_an_error(routed: Callable[..., Routed], kind: str) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()

    def title() -> str:
        client.get("key")
        page = proxy.fleet.http("GET", "/")[1].decode()
        return page.partition("<title>")[2].partition("</title>")[0]

    wait_for(lambda: title()[0] not in "▲✖", "all is well")
    proxy.pools["main"][0].kill()
    wait_for(lambda: title().startswith("▲"), "the page says that it is degraded", 25)
    state = json.loads(proxy.fleet.http("GET", "/?format=json")[1])
    assert state["state"]["word"] == "degraded"
    (pain,) = [pain for pain in state["pains"] if "server main0" in pain["text"]]
    assert pain["level"] == "warning" and pain["text"].endswith("clients get no errors")


def test_a_read_that_is_not_answered_in_time_is_asked_of_the_next(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    proxy.to(proxy.pools["spare"][0].port).set("key", "spare")
    assert client.get("key") is None
    proxy.pools["main"][0].freeze()
    try:
        assert client.get("key") == b"spare"
    finally:
        proxy.pools["main"][0].thaw()


def test_a_write_that_may_have_been_done_is_not_done_again(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    client = proxy.client()
    client.set("number", "1")
    proxy.to(proxy.pools["spare"][0].port).set("number", "10")
    proxy.pools["main"][0].freeze()
    try:
        with pytest.raises(Exception, match=rf"main0.*no answer within {READ_MS} ms"):
            client.incr("number", 1)
    finally:
        proxy.pools["main"][0].thaw()
    assert proxy.kept("spare", "number") == b"10"


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_writes_of_one_client_are_handed_on_in_their_order(routed: Callable[..., Routed], kind: str) -> None:
    """The first has been sent and is not answered; the others wait behind it when the connection is given up."""
    proxy = routed(SIZES, ROUTE)
    with FakeServer(REDIS, "silent", polite=True) as silent:
        proxy.fleet.write(proxy.config(ROUTE).replace(proxy.pools["main"][0].address, silent.address))
        assert proxy.fleet.reload().accepted
        client = redis.Redis(port=proxy.port)
        many = client.pipeline(transaction=False)
        for number in range(50):
            many.set("key", number)
        assert many.execute() == [True] * 50
        client.close()
    assert proxy.kept("spare", "key") == b"49"


def test_the_logs_name_who_has_answered(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, ROUTE)
    proxy.fleet.write(proxy.config(ROUTE) + "[log]\nslow_ms = 100\naccess_sample = 1.0\n")
    assert proxy.fleet.reload().accepted
    client = proxy.client()
    client.set("key", "value")
    wait_for(lambda: [line for line in proxy.fleet.read_log().splitlines()
                      if "request.sampled" in line and "node=main0" in line], "its server is in the log")  # fmt: skip
    proxy.pools["main"][0].freeze()
    try:
        assert client.get("key") is None
    finally:
        proxy.pools["main"][0].thaw()
    record = wait_for(lambda: json.loads(proxy.fleet.http("GET", "/slowlog")[1])["slowlog"], "it was slow")[0]
    assert record["node"] == "spare0"
    assert record["queue_us"] + record["connect_us"] > 200_000 > record["merge_us"] + record["parse_us"]
