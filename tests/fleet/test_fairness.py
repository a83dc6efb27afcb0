"""One greedy client must not starve fifty ordinary ones, whatever it asks for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import pytest
import redis

from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{node} a"]
  timeout = {{ read_ms = 5000 }}
"""
ORDINARY = 50
SAMPLES = 40 * ORDINARY
MOST = 10  # times the p99 without the greedy client
LAG_S = 1.0  # of the event loop; a busy machine has its part in it

MEGABYTE = b"x" * 1_000_000
GREEDY = {
    "reads": b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * 100_000,
    "answered by the proxy": b"*1\r\n$4\r\nPING\r\n" * 100_000,
    "large values": b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%b\r\n" % (len(MEGABYTE), MEGABYTE) * 10,
}


@contextmanager
def endlessly(port: int, data: bytes) -> Iterator[Callable[[], int]]:
    """A client that sends this over and over and reads what comes; called, it tells how many bytes have come."""
    sock = socket.create_connection(("127.0.0.1", port))
    got = [0]

    def send() -> None:
        with suppress(OSError):  # the end of the test
            while True:
                sock.sendall(data)

    def receive() -> None:
        with suppress(OSError):
            while part := sock.recv(1 << 18):
                got[0] += len(part)

    threads = [threading.Thread(target=body, daemon=True) for body in (send, receive)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: got[0]
    finally:
        sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        sock.close()


def measured(port: int, times: list[float]) -> Callable[[int], Callable[[], None]]:
    """An ordinary client, which notes how long each request took."""

    def make_step(number: int) -> Callable[[], None]:
        client = redis.Redis(port=port, protocol=2)

        def step() -> None:
            began = monotonic()
            client.get("k")
            times.append(monotonic() - began)

        return step

    return make_step


def p99(times: list[float]) -> float:
    """Of the samples that come from now on."""
    start = len(times)
    wait_for(lambda: len(times) >= start + SAMPLES, "enough samples", 30)
    return sorted(times[start:])[int(0.99 * (len(times) - start))]


@pytest.mark.parametrize("greed", GREEDY)
def test_a_greedy_client_does_not_starve_ordinary_ones(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], greed: str
) -> None:
    port = free_port()
    fleet = start_fleet(CONFIG.format(port=port, node=redis_nodes[0].port))
    times: list[float] = []
    with Crowd(ORDINARY, measured(port, times)) as crowd:
        wait_for(lambda: crowd.done > ORDINARY, "all are at work", 30)
        alone = p99(times)
        with endlessly(port, GREEDY[greed]) as got:
            wait_for(got, "the greedy client is served")
            beside = p99(times)
            lag = fleet.stats()["workers"][0]["loop_lag_s"]
            before = got()
            wait_for(lambda: got() > before, "the greedy client is still served")
    assert crowd.failures == []
    assert beside < MOST * alone
    assert 0 < lag < LAG_S
    if greed == "answered by the proxy":
        assert fleet.stats()["instances"]["user"]["yields"] > 0
