"""What of a value that is refused, or sent with a wrong length, is taken for requests must be named nowhere: not as a
command, not as a key, in no record and no statistics, also where keys are shown."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
[log]
format = "json"
slow_ms = {slow_ms}
access_sample = {sample}
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [instance.limits]
  max_value_bytes = "1KB"
  max_line_bytes = 2048
  [[instance.level]]
  storage = "{protocol}"
  servers = ["{server} a"]
  timeout = {{ read_ms = 200 }}
"""
SERVERS = {"redis": redis_server, "memcache": memcached}
TOO_LARGE = b"SERVER_ERROR object too large for cache\r\n"
SECRET = b"hunter2 hunter3\r\nget hunter4\r\n"
StartFleet = Callable[[str], Fleet]
Own = Callable[[Running], Running]


def start(
    start_fleet: StartFleet, protocol: str, port: int, server: Running, slow_ms: int = 0, sample: float = 1.0
) -> Fleet:
    """One that shows keys."""
    text = CONFIG.format(protocol=protocol, port=port, server=server.address, slow_ms=slow_ms, sample=sample)
    fleet = start_fleet(text)
    fleet.write(f'{text}[admin]\nlisten = "127.0.0.1:{fleet.admin_port}"\nshow_keys = true\n')
    assert fleet.reload().accepted
    return fleet


def records(fleet: Fleet) -> list[tuple[str, int, str]]:
    """The command, the number of requests and the key of all records so far."""
    lines = [line for line in fleet.read_log().splitlines() if '"request.' in line]
    return [(record["command"], record["requests"], record["key"]) for record in map(json.loads, lines)]


def read_until(sock: socket.socket, end: bytes) -> bytes:
    got = b""
    while not got.endswith(end):
        data = sock.recv(65536)
        if not data:
            break
        got += data
    return got


TAILS = [
    (b"get a\r\n", b"END\r\n", ("get", 1, "a")),
    (b"get a\r\nget b\r\n", b"END\r\nEND\r\n", ("get", 2, "a")),
    (b"get a b\r\nmg c v\r\n", b"END\r\nEN\r\n", ("get", 2, "a")),
    (b"get a\r\nquit\r\n", b"END\r\n", ("get", 2, "a")),
    (b"version\r\n", b"\r\n", ("version", 1, "")),
    (b"quit\r\n", b"", ("quit", 1, "")),
    (b"delete a noreply\r\nget b\r\n", b"END\r\n", ("delete", 2, "a")),
    (b"set k 0 0 2000\r\n" + b"hunter5 ".ljust(2000, b"x") + b"\r\nget a\r\n", b"END\r\n", ("set", 2, "k")),
    (b"hunter5\r\n", b"ERROR\r\n", ("", 1, "")),
    (b"hunter5 a\r\nget a\r\n", b"ERROR\r\nEND\r\n", ("", 2, "")),
]


def test_the_rest_of_a_refused_value_is_no_request_of_the_record(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(memcached()), free_port()
    fleet = start(start_fleet, "memcache", port, server)
    expected = []
    for tail, answer, said in TAILS:
        expected += [("set", 1, ""), said]
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(b"set big 0 0 3000\r\n" + b"v" * 1000)
            assert read_until(sock, TOO_LARGE) == TOO_LARGE
            sock.sendall(SECRET.ljust(2000, b"w") + b"\r\n" + tail)
            assert read_until(sock, answer).endswith(answer)
        wait_for(lambda: len(records(fleet)) >= len(expected), "both reads are in the log")  # noqa: B023
    assert records(fleet) == expected
    assert "hunter" not in fleet.read_log()


def test_nor_is_it_one_of_a_slow_record(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(memcached()), free_port()
    fleet = start(start_fleet, "memcache", port, server, slow_ms=100, sample=0.0)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"set big 0 0 3000\r\n" + b"v" * 1000)
        assert read_until(sock, TOO_LARGE) == TOO_LARGE
        server.freeze()
        sock.sendall(SECRET.ljust(2000, b"w") + b"\r\nget a\r\n")
        assert read_until(sock, b"\r\n").startswith(b"SERVER_ERROR")
    wait_for(lambda: records(fleet)[-1:] == [("get", 1, "a")], "the record is that of the get")
    assert "hunter" not in fleet.read_log() + fleet.http("GET", "/slowlog")[1].decode()


def test_nor_are_its_words_hot_keys_or_large_values(start_fleet: StartFleet, own: Own) -> None:
    """The value stands in the middle of a pipeline, and at the beginning of a batch (the first ones are of 4)."""
    server, port = own(memcached()), free_port()
    fleet = start(start_fleet, "memcache", port, server, sample=0.0)
    value = (b"get hunter2\r\nset hunter3 0 0 3\r\nabc\r\n" * 60)[:2000] + b"\r\n"
    refused = b"set big 0 0 2000\r\n" + value
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for number in range(1500):
            many = (b"get a\r\n", b"version\r\n", b"")[number % 3]
            sock.sendall(many * (number % 5) + refused + b"get a\r\nget b c\r\nmn\r\n")
            read_until(sock, b"MN\r\n")
    (shown,) = [fleet.stats()["instances"]["user"]]
    keys = {key for key, _ in shown["hot_keys"] + shown["big_keys"]}
    assert keys <= {"a", "b", "c", "big"}
    assert "a" in keys


SET = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%b\r\n"
PING = b"*1\r\n$4\r\nPING\r\n"


# What is sent on a connection, how the answer ends ("" when the connection is closed), and what the first record says.
NO_COMMANDS = {
    "redis": [
        # the value is longer than its length says: its rest is taken for a line
        (SET % (3, b"abc\r\nhunter2 hunter3"), b"'hunter3' \r\n", ("set", 2, "k")),
        (b"hunter2 hunter3\r\n" + PING, b"+PONG\r\n", ("", 2, "")),
        (b"\r\n\r\n" + PING + b"hunter2\r\n", b": \r\n", ("ping", 2, "")),
        (b"\"hunter2 'a\r\n", b"", ("", 1, "")),
        (b"*2\r\n$7\r\nhunter2\r\n$7\r\nhunter3\r\n", b"'hunter3' \r\n", ("", 1, "")),
        (b"*2\r\n$7\r\nhunter2\r\n$9999\r\n", b"", ("", 1, "")),
        (SET % (1500, b"hunter2".ljust(1500)), b"", ("set", 1, "k")),
    ],
    "memcache": [
        (b"set k 0 0 3\r\nabc\r\nhunter2 hunter3\r\n", b"ERROR\r\n", ("set", 2, "k")),
        (b"set k 0 0 3\r\nabcd\r\nhunter2 hunter3\r\n", b"ERROR\r\n", ("set", 3, "")),
        (b"hunter2 hunter3\r\nget a\r\n", b"END\r\n", ("", 2, "")),
        (b"get\thunter2\r\n", b"ERROR\r\n", ("", 1, "")),
        (b"hunter2" * 2000, b"", ("", 1, "")),
    ],
}


@pytest.mark.parametrize("protocol", ["redis", "memcache"])
def test_a_line_that_is_no_command_has_no_name(start_fleet: StartFleet, own: Own, protocol: str) -> None:
    server, port = own(SERVERS[protocol]()), free_port()
    fleet = start(start_fleet, protocol, port, server)
    for sent, end, said in NO_COMMANDS[protocol]:
        before = len(records(fleet))
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(sent)
            read_until(sock, end or b"it is closed")
        of_this = lambda: records(fleet)[before:]  # noqa: B023, E731
        wait_for(lambda: sum(count for _, count, _ in of_this()) == said[1], "all are in the log")  # noqa: B023
        assert of_this()[0][::2] == said[::2]
    assert "hunter" not in fleet.read_log()
