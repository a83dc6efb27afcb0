"""The server among people who are slow, silent, many, or talk nonsense; and what traffic notices of it: nothing."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import gevent
import psutil
import pytest
from gevent import socket as gsocket

from supervisor.sidecar import server as server_module
from supervisor.sidecar.link import WORKERS_BURST, WORKERS_EVERY_S
from supervisor.sidecar.server import MAX_CONNECTIONS, Server
from tests.kit.wait import wait_for
from tests.sidecar.conftest import Shop

StartShop = Callable[..., Shop]


def connect(shop: Shop, data: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", shop.fleet.admin_port), timeout=20)
    sock.sendall(data)
    return sock


def test_idle_and_half_requests_keep_nobody_out(start_shop: StartShop) -> None:
    shop = start_shop()
    half = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n"
    crowd = [connect(shop, half if number % 2 else b"") for number in range(2 * MAX_CONNECTIONS)]
    assert shop.ask("/health/live").status == 200
    assert crowd[0].recv(1) == b"", "the one that was silent the longest has been closed"
    with shop.client() as client:
        assert client.set("k", "v")
    for one in crowd:
        one.close()
    assert shop.ask("/health/live").status == 200
    assert "Traceback" not in shop.fleet.read_log(), "who is hung up on is no news"


def order(path: bytes, body: bytes) -> bytes:
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (path, len(body)) + body


HALF_BODY = order(b"/node", b"{" * 9)[:-1]


def test_half_bodies_keep_nobody_out(start_shop: StartShop) -> None:
    shop = start_shop()
    crowd = [connect(shop, HALF_BODY) for _ in range(2 * MAX_CONNECTIONS)]
    began = time.monotonic()
    assert shop.ask("/health/live").status == 200
    assert time.monotonic() - began < server_module.IO_S / 2
    for one in crowd:
        one.close()


def test_those_who_send_many_requests_at_once_wait_for_others(start_shop: StartShop) -> None:
    shop = start_shop()
    ahead = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    crowd = [connect(shop, ahead) for _ in range(MAX_CONNECTIONS + 50)]
    began = time.monotonic()
    assert shop.ask("/health/live").status == 200
    assert time.monotonic() - began < 15.0, "one answer for each of the others, and not all of theirs"
    for one in crowd:
        one.close()


def test_requests_in_a_row_are_answered_in_order(start_shop: StartShop) -> None:
    shop = start_shop()
    with connect(shop, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50) as sock:
        sock.shutdown(socket.SHUT_WR)
        assert sock.makefile("rb").read().count(b"HTTP/1.1 200 OK") == 50
    assert shop.ask("/health/live", Connection="close").headers["connection"] == "close"


NONSENSE = (
    b"\r\n\r\n",
    b"GARBAGE\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /stats HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
    b"POST /reload HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[\r\nContent-Length: 0\r\n\r\n",
    b"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    b"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /node HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\nContent-Type: application/json\r\n\r\n",
    b"POST /node HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n[[",
    order(b"/node", b"[" * 50000),
    order(b"/disconnect", b'{"worker": "' + b"9" * 5000 + b'"}'),
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /stats?worker=%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /stats?worker=\xb2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /stats?worker=" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
)


def test_nonsense_is_refused_without_a_traceback(start_shop: StartShop) -> None:
    shop = start_shop()
    for nonsense in NONSENSE:
        answer = b""
        with connect(shop, nonsense) as sock, suppress(ConnectionError):
            sock.shutdown(socket.SHUT_WR)
            while data := sock.recv(10_000):
                answer += data
        refused = answer == b"" or int(answer.split()[1]) in range(400, 500)
        assert refused, (nonsense[:80], answer[-300:])
    assert shop.ask("/health/live").status == 200
    assert "Traceback" not in shop.fleet.read_log()


def test_who_hammers_the_sidecar_does_not_make_workers_count_instead_of_serve(start_shop: StartShop) -> None:
    shop = start_shop()
    asked = 100
    began = time.monotonic()
    with ThreadPoolExecutor(asked) as crowd:
        statuses = [answer.status for answer in crowd.map(lambda _: shop.ask("/stats"), range(asked))]
    seconds = time.monotonic() - began
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) <= WORKERS_BURST + 1 + seconds / WORKERS_EVERY_S
    wait_for(lambda: shop.ask("/stats").status == 200, "it answers again")


def test_a_sidecar_that_stands_still_does_not_touch_traffic(start_shop: StartShop) -> None:
    shop = start_shop()
    sidecar = shop.fleet.sidecar()
    sidecar.send_signal(signal.SIGSTOP)
    try:
        with shop.client() as client:
            for number in range(500):
                assert client.set("k", number)
    finally:
        sidecar.send_signal(signal.SIGCONT)
    assert shop.ask("/health/ready").status == 200


def test_a_dead_sidecar_comes_back_and_has_all_counters(start_shop: StartShop) -> None:
    shop = start_shop()
    with shop.client() as client:
        for _ in range(10):
            client.get("k")
    sidecar = shop.fleet.sidecar()
    sidecar.kill()
    psutil.wait_procs([sidecar], timeout=10)
    wait_for(shop.fleet.is_ready, "another sidecar answers")
    assert shop.ask("/stats").json["instances"]["shop"]["requests"]["read"] == 10


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server without patience, in this process."""
    monkeypatch.setattr(server_module, "HEAD_S", 0.2)
    monkeypatch.setattr(server_module, "REQUEST_S", 0.2)

    def application(environ: dict[str, object], start_response: Callable[..., object]) -> list[bytes]:
        seen.append(environ["PATH_INFO"])
        read = environ["wsgi.input"].read()  # type: ignore[attr-defined]
        start_response("200 OK", [])
        return [read or b"fine"]

    listener = gsocket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    seen: list[object] = []
    server = Server(listener, application)
    server.seen = seen
    server.start()
    yield server
    server.stop(timeout=1)


HALVES = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half a head": b"GET / HTTP/1.1\r\nHost: x\r\n",
    "half a body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
    "after an answer": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}


def dribble(sock: gsocket.socket) -> None:
    with suppress(OSError):
        sock.send(b"a")


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_who_does_not_go_on_is_hung_up_on(hasty: Server, half: bytes) -> None:
    with gsocket.create_connection(("127.0.0.1", hasty.server_port), timeout=10) as sock:
        sock.sendall(half)
        # A byte now and then is no way to stay.
        drip = gevent.get_hub().loop.timer(0.05, repeat=0.05)
        drip.start(lambda: dribble(sock))
        received = b""
        with suppress(ConnectionResetError):
            while data := sock.recv(1000):
                received += data
        drip.close()
    assert len(received) < 500
    assert half not in (HALVES["half a line"], HALVES["half a head"]) or not hasty.seen, "half an order is no order"
    wait_for(lambda: not hasty.idle or gevent.idle(), "nothing is remembered of it")
