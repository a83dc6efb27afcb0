"""class: reads to one pool, all other commands to another."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic

import pytest
import redis

from tests.front.routes.conftest import READ_MS, Routed
from tests.kit.key_values import sqlite_level
from tests.kit.wait import wait_for

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


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_what_is_found_below_is_kept_by_the_master_of_the_replica_that_is_read_from(
    routed: Callable[..., Routed], kind: str
) -> None:
    proxy = routed({"main": 1, "copies": 1}, ROUTE, sqlite_level())
    master, replica, client = proxy.server("main", 0), proxy.server("copies", 0), proxy.client()
    replica.replicaof("127.0.0.1", proxy.pools["main"][0].port)
    wait_for(lambda: replica.info("replication")["master_link_status"] == "up", "it is a replica")
    client.set("key", "below")
    wait_for(lambda: client.get("key") == b"below" == master.get("key"), "the master has a copy")
    wait_for(lambda: replica.get("key") == b"below", "and so has its replica")
    replica.config_set("replica-read-only", "no")
    replica.set("key", "read here")
    assert client.get("key") == b"read here"


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_writes_that_are_stuck_hold_back_no_reads(routed: Callable[..., Routed], kind: str) -> None:
    proxy = routed({"main": 1, "copies": 1}, ROUTE)
    proxy.fleet.write(proxy.config(ROUTE).replace(f"read_ms = {READ_MS}", "read_ms = 9000, queue_ms = 9000")
                      .replace("backoff =", 'max_pending_bytes = "64KB"\n  backoff ='))  # fmt: skip
    assert proxy.fleet.reload().accepted
    proxy.server("copies", 0).set("key", "copied")
    proxy.pools["main"][0].freeze()
    with ExitStack() as stack:
        stack.callback(proxy.pools["main"][0].thaw)
        for _ in range(24):
            writer = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port)))
            writer.sendall(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1000000\r\n%b\r\n" % bytes(1_000_000))
        wait_for(lambda: proxy.stuck("main0") > 2 * 65536, "more waits than may")
        began = monotonic()
        for _ in range(8):  # of any worker
            client = stack.enter_context(redis.Redis(port=proxy.port, protocol=2))  # on the writers' connections
            assert [client.get("key") for _ in range(3)] == [b"copied"] * 3
        assert monotonic() - began < 8.0  # what waits for the frozen one waits for nine seconds
