"""Who waits, listens or is in a transaction while a reload changes how its server is used: it goes on there, and hears
of what becomes of the server afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.front.redis.conftest import Proxy, encode
from tests.front.redis.test_waiting import blocked
from tests.kit.servers import Running
from tests.kit.wait import wait_for

SHORT, LONG, LONGER = (f"timeout = {{ read_ms = {ms} }}" for ms in (900, 1900, 2900))
GONE = b": removed from the configuration\r\n"
WAITS = "BLPOP", "{t}l", "0"
POPPED = b"*2\r\n$4\r\n{t}l\r\n$1\r\nx\r\n"
HEARD = b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"


class Before:
    """Clients that began before two reloads, each of which changes a deadline alone."""

    def __init__(self, start_proxy: Callable[..., Proxy], node: Running) -> None:
        self.proxy = start_proxy([node.address], level=SHORT, workers=1)
        self.node = node
        self.waiting, self.listener, self.pair = (self.proxy.raw() for _ in range(3))
        self.waiting.sock.sendall(encode(*WAITS))
        assert self.listener.redis(b"SUBSCRIBE", b"news") == b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
        assert self.pair.redis(b"WATCH", b"{t}w") == b"+OK\r\n"
        wait_for(lambda: blocked([node]) == 1, "it waits")
        for level in (LONG, LONGER):
            self.reload(SHORT, level)

    def reload(self, old: str, new: str) -> None:
        self.proxy.fleet.write(self.proxy.config.replace(old, new))
        assert self.proxy.fleet.reload().accepted


@pytest.fixture
def before(start_proxy: Callable[..., Proxy], redis_nodes: list[Running]) -> Before:
    return Before(start_proxy, redis_nodes[0])


def test_all_go_on_where_they_are(before: Before) -> None:
    client = before.proxy.client()
    client.rpush("{t}l", "x")
    assert before.waiting.file.read(len(POPPED)) == POPPED
    assert client.publish("news", "hello") == 1
    assert before.listener.file.read(len(HEARD)) == HEARD
    assert before.pair.redis(b"MULTI") == b"+OK\r\n"
    assert before.pair.redis(b"SET", b"{t}w", b"1") == b"+QUEUED\r\n"
    assert before.pair.redis(b"EXEC") == b"*1\r\n+OK\r\n"
    before.listener.close()
    wait_for(lambda: client.pubsub_numsub("news") == [(b"news", 0)], "the listener's connection is closed")
    nodes = lambda: before.proxy.fleet.stats()["instances"]["user"]["nodes"]["a"]  # noqa: E731
    wait_for(lambda: nodes()["connections"] == 1, "but for the shared one all connections are closed and forgotten")


def test_a_later_reload_that_takes_the_server_away_is_told(before: Before, redis_nodes: list[Running]) -> None:
    before.reload(before.node.address, redis_nodes[1].address)
    assert before.waiting.file.readline().endswith(GONE)
    assert before.listener.file.read() == b""
    assert before.pair.redis(b"MULTI") == b"+OK\r\n"
    assert before.pair.redis(b"SET", b"{t}w", b"1").endswith(b"has taken its server away: begin anew\r\n")


@pytest.mark.parametrize("state", ["drain", "maintenance"])
def test_a_later_order_is_told(before: Before, state: str) -> None:
    order: dict[str, object] = {"instance": "user", "node": "a", "state": state}
    assert before.proxy.fleet.post("/node", order)[0] == 200
    assert before.waiting.file.readline().startswith(b"-ERR instance 'user' node 'a (")
    assert before.listener.file.read() == b""
    assert before.pair.redis(b"MULTI") == b"+OK\r\n"
    queued = before.pair.redis(b"SET", b"{t}w", b"1")
    assert queued == b"+QUEUED\r\n" if state == "drain" else queued.startswith(b"-ERR")
