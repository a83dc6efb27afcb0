"""Who is let go in the middle of sending reads why: the connection is not reset under the error."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest

from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 10
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [instance.limits]
  max_value_bytes = "{value}"
  max_request_bytes = "1MB"
  max_clients = 10
{level}
"""
SERVER = '  [[instance.level]]\n  storage = "{protocol}"\n  servers = ["{server}"]\n'
SENT = 64 << 20  # more than the buffers of both ends hold
LINGER_S = 2.0  # as of docs/errors.md, all of these
MOST_CLIENTS = 128
MOST_BYTES = 256 << 20
TOO_LONG = b"the request is longer than limits.max_request_bytes (1048576)"
PUT = b"PUT /v1/user/a HTTP/1.1\r\nHost: x\r\n"
SET_BIG = b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n"
BROKEN = b"*1\r\n$x\r\n"
BROKEN_ANSWER = b"-ERR Protocol error: invalid bulk length\r\n"

Serve = Callable[..., tuple[Fleet, int]]


@pytest.fixture
def serve(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], memcached_nodes: list[Running]
) -> Serve:
    """`serve(protocol)`: the fleet and its port."""
    servers = {"redis": redis_nodes[0], "memcache": memcached_nodes[0]}
    levels = {name: SERVER.format(protocol=name, server=server.address) for name, server in servers.items()}
    levels["http"] = sqlite_level()

    def start(protocol: str, value: str = "1GB") -> tuple[Fleet, int]:
        port = free_port()
        return start_fleet(CONFIG.format(protocol=protocol, port=port, level=levels[protocol], value=value)), port

    return start


def connected(stack: ExitStack, port: int) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))


def slow_reader(stack: ExitStack, port: int) -> socket.socket:
    """A client for which the system takes less than a large answer."""
    client = stack.enter_context(socket.socket())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.settimeout(30)
    client.connect(("127.0.0.1", port))
    return client


def established(port: int) -> set[int]:
    """The ports of those whose connections to this one the proxy has not ended."""
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    there = [remote for local, remote, state in rows if local.endswith(f":{port:04X}") and state == "01"]
    return {int(remote.partition(":")[2], 16) for remote in there}


def told(port: int, begun: bytes) -> bytes:
    """What a client reads that sends all it has to send, and reads then; up to the end of the connection."""
    with ExitStack() as stack:
        client = connected(stack, port)
        client.sendall(begun.ljust(SENT, b"x"))
        return client.makefile("rb").read()


@pytest.mark.parametrize(
    ("protocol", "begun", "answer"),
    [
        ("redis", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % SENT, b"-ERR " + TOO_LONG + b"\r\n"),
        ("redis", BROKEN, BROKEN_ANSWER),
        ("memcache", b"set k 0 0 %d\r\n" % SENT, b"CLIENT_ERROR " + TOO_LONG + b"\r\n"),
        ("memcache", b"get ", b"CLIENT_ERROR line too long\r\n"),
    ],
)
def test_a_client_that_sends_what_nobody_reads_is_told(
    serve: Serve, protocol: str, begun: bytes, answer: bytes
) -> None:
    _, port = serve(protocol)
    assert told(port, begun) == answer


@pytest.mark.parametrize(
    ("begun", "status", "code"),
    [
        (PUT + b"Content-Length: %d\r\n\r\n" % SENT, b"413", "body_too_large"),
        (PUT + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % SENT, b"413", "request_too_large"),
        (PUT + b"X: ", b"431", "head_too_large"),
        (PUT + b"Content-Length: x\r\n\r\n", b"400", "malformed"),
    ],
)
def test_a_client_of_http_that_sends_what_nobody_reads_is_told(
    serve: Serve, begun: bytes, status: bytes, code: str
) -> None:
    _, port = serve("http", "512KB" if code == "body_too_large" else "1GB")
    head, _, body = told(port, begun).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %b " % status) and b"\r\nConnection: close" in head
    assert json.loads(body)["error"]["code"] == code


@pytest.mark.parametrize(
    ("protocol", "asked", "more"),
    [
        ("http", b"GET /v1/user/big HTTP/1.0\r\n\r\n", b"\r\n"),
        ("http", b"GET /v1/user/big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"),
        ("redis", b"GET big\r\nQUIT\r\n", b"PING\r\n"),
    ],
)
def test_who_asks_for_the_end_reads_all_before_it_whatever_he_says_behind(
    serve: Serve, protocol: str, asked: bytes, more: bytes
) -> None:
    _, port = serve(protocol)
    size = 700_000  # more than the buffers hold that are given to this client
    with ExitStack() as stack:
        writer = connected(stack, port)
        begun = PUT.replace(b"/a ", b"/big ") + b"Content-Length: %d\r\n\r\n" if protocol == "http" else SET_BIG
        writer.sendall(begun % size + b"x" * size + b"\r\n" * (protocol == "redis"))
        assert writer.recv(100)
        client = slow_reader(stack, port)
        client.sendall(asked)
        assert client.recv(1, socket.MSG_PEEK)  # the answer has begun
        client.sendall(more)
        assert client.makefile("rb").read().count(b"x" * size) == 1


@pytest.mark.parametrize("told", ["TERM", "USR2", "workers"])
def test_who_is_let_go_reads_all_of_his_last_answer_whatever_he_says_behind(serve: Serve, told: str) -> None:
    fleet, port = serve("redis")
    size = 700_000
    with ExitStack() as stack:
        writer = connected(stack, port)
        writer.sendall(SET_BIG % size + b"x" * size + b"\r\n")
        assert writer.recv(100) == b"+OK\r\n"
        client = slow_reader(stack, port)
        client.sendall(b"GET big\r\n")
        assert client.recv(1, socket.MSG_PEEK)  # the answer has begun
        if told == "workers":
            fleet.write(fleet.file.read_text().partition("[admin]")[0].replace("workers = 1", "workers = 2"))
            assert fleet.reload().accepted
        else:
            fleet.send_signal(getattr(signal, f"SIG{told}"))
        mine = client.getsockname()[1]
        wait_for(lambda: mine not in established(port), "the proxy has said its good-bye")
        client.sendall(b"PING\r\n")
        assert client.makefile("rb").read() == b"$%d\r\n%b\r\n" % (size, b"x" * size)


@pytest.mark.parametrize(
    ("protocol", "head", "tail", "answer"),
    [
        ("redis", SET_BIG % 200_000, b"\r\n", b"+OK\r\n"),
        ("memcache", b"set big 0 0 200000\r\n", b"\r\n", b"STORED\r\n"),
        ("http", PUT + b"Content-Length: 200000\r\n\r\n", b"", b"HTTP/1.1 201 "),
    ],
)
def test_who_is_in_the_middle_of_a_large_request_is_let_go_behind_its_answer(
    serve: Serve, protocol: str, head: bytes, tail: bytes, answer: bytes
) -> None:
    fleet, port = serve(protocol)
    with ExitStack() as stack:
        sender = connected(stack, port)
        sender.sendall(head + b"x" * 100_000)
        idle = [connected(stack, port) for _ in range(8)]
        received = lambda: fleet.stats()["instances"]["user"]["bytes_in"] == len(head) + 100_000  # noqa: E731
        wait_for(received, "the half of it is there")
        fleet.send_signal(signal.SIGTERM)
        for client in idle:
            assert client.recv(1) == b""
        sender.sendall(b"x" * 100_000 + tail)
        with sender.makefile("rb") as stream:
            assert stream.read().startswith(answer)
    assert fleet.process.wait(20) == 0


def test_a_client_too_many_is_told_though_it_has_begun(serve: Serve) -> None:
    _, port = serve("redis")
    with ExitStack() as stack:
        for _ in range(10):
            client = connected(stack, port)
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
        assert told(port, b"") == b"-ERR max number of clients reached\r\n"


def test_who_goes_on_sending_is_cut_after_so_many_bytes(serve: Serve) -> None:
    fleet, port = serve("redis")
    before, sent, more = fleet.stats()["workers"][0]["fds"], 0, b"x" * (1 << 20)
    with ExitStack() as stack, suppress(ConnectionError):
        client = connected(stack, port)
        client.sendall(BROKEN)
        while sent < 2 * MOST_BYTES:
            sent += client.send(more)
    assert SENT < sent < MOST_BYTES + SENT
    wait_for(lambda: fleet.stats()["workers"][0]["fds"] <= before, "nothing of it is left")


def test_who_sends_a_little_now_and_then_is_cut_after_a_while(serve: Serve) -> None:
    _, port = serve("redis")

    def is_cut(client: socket.socket) -> bool:
        try:
            client.send(b"x")
        except ConnectionError:
            return True
        return False

    with ExitStack() as stack:
        client = connected(stack, port)
        began = monotonic()
        client.sendall(BROKEN)
        assert client.makefile("rb").read() == BROKEN_ANSWER
        wait_for(lambda: is_cut(client), "it is cut")
    assert monotonic() - began > LINGER_S / 2


def test_many_that_stay_hold_neither_places_nor_descriptors(serve: Serve) -> None:
    fleet, port = serve("redis")
    fds = lambda: fleet.stats()["workers"][0]["fds"]  # noqa: E731
    before = fds()
    with ExitStack() as stack:
        for _ in range(2 * MOST_CLIENTS):
            client = connected(stack, port)
            client.sendall(BROKEN)
            assert client.makefile("rb").read() == BROKEN_ANSWER
        assert fleet.stats()["instances"]["user"]["clients"] == 0
        assert before < fds() <= before + MOST_CLIENTS
        wait_for(lambda: fds() <= before, "they are forgotten")


def test_a_worker_that_ends_does_not_wait_for_them(serve: Serve) -> None:
    fleet, port = serve("redis")
    worker = psutil.Process(fleet.worker_pids()[0])
    with ExitStack() as stack:
        clients = [connected(stack, port) for _ in range(5)]
        for client in clients:
            client.sendall(BROKEN)
            assert client.makefile("rb").read() == BROKEN_ANSWER
        began = monotonic()
        fleet.send_signal(signal.SIGTERM)
        wait_for(lambda: not worker.is_running(), "it has ended")
        assert monotonic() - began < 0.8 * LINGER_S
    assert fleet.process.wait(20) == 0  # a second TERM may meet the master when it has no ear for it any more
