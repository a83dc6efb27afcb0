"""What the tests of the access log share: a fleet that logs every request, and its records as they are read again."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from typing import Any

from tests.kit.fleet import Fleet
from tests.kit.servers import Running, memcached, redis_server

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
[log]
format = "{form}"
slow_ms = {slow_ms}
access_sample = 1
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "{protocol}"
  servers = ["{server} a"]
"""
PHASES = ("parse_us", "queue_us", "connect_us", "storage_us", "merge_us", "write_us")
FIELDS = [
    "instance", "client", "command", "requests", "keys", "key", "node", "bytes_in", "bytes_out", "total_us", *PHASES,
    "error", "slot", "pid", "generation",
]  # fmt: skip
NUMBERS = {"requests", "keys", "bytes_in", "bytes_out", "total_us", *PHASES, "slot", "pid", "generation"}
SERVERS = {"redis": redis_server, "memcache": memcached}
StartFleet = Callable[[str], Fleet]
Own = Callable[[Running], Running]
Record = dict[str, Any]

MISS = b"$-1\r\n"
MANY = [b"key:%d" % number for number in range(40)]


def resp(*words: bytes) -> bytes:
    """A request of a redis client."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def config(port: int, server: Running, protocol: str, form: str, slow_ms: int = 0) -> str:
    """One worker before one server, "a", with every request in its log; form: that of the log, `json` or `text`."""
    return CONFIG.format(port=port, server=server.address, protocol=protocol, form=form, slow_ms=slow_ms)


def parsed(line: str) -> Record:
    """One line of the log, as `json` or as `text`; what is common to both forms is asserted."""
    if line.startswith("{"):
        record = json.loads(line)
        assert list(record) == ["time", "level", "event", *FIELDS]
        assert all(isinstance(record[name], int) == (name in NUMBERS) for name in FIELDS)
    else:
        time, level, event, rest = line.split(" ", 3)
        pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)(?: |$)', rest)
        assert [name for name, _ in pairs] == FIELDS
        record = {name: json.loads(value) if value[0] == '"' else value for name, value in pairs}
        record |= {name: int(record[name]) for name in NUMBERS} | {"time": time, "level": level, "event": event}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["time"])
    assert record["level"] == "info"
    return dict(record)


def sampled(fleet: Fleet) -> list[Record]:
    """The records of requests so far."""
    return [parsed(line) for line in fleet.read_log().splitlines() if "request.sampled" in line]


def exchange(sock: socket.socket, request: bytes, answer: bytes | None) -> int:
    """Send, and read the answer; its size."""
    sock.sendall(request)
    if answer is None:
        return len(sock.recv(1000))
    got = b""
    while len(got) < len(answer):
        part = sock.recv(1 << 20)
        assert part, f"closed after {got[-100:]!r}"
        got += part
    assert got == answer
    return len(got)
