"""The sides that are compared: a server without proxy, twemproxy, and this project with several numbers of workers."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmark.cases import KEYSPACE, VALUE
from tests.kit import servers
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port

DIRECT, TWEMPROXY = "direct", "twemproxy"
BATCH = 1000  # keys stored at a time

POOL = """\
{protocol}:
  listen: 127.0.0.1:{{port}}
  hash: fnv1a_64
  distribution: ketama
  preconnect: true
  redis: {is_redis}
  server_connections: 1
  timeout: 5000
  servers:
"""

INSTANCE = """
[[instance]]
name = "{protocol}"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "{protocol}"
  hash = "fnv1a_64"
  distribution = "ketama"
  servers = [{nodes}]
  timeout = {{ connect_ms = 1000, read_ms = 5000, queue_ms = 5000 }}
"""


BELOW = """
  [[instance.level]]
  storage = "sqlite"
  servers = ["below.db"]
"""


@dataclass(frozen=True, slots=True)
class Side:
    """Where to send the load of each protocol, and the root of the process tree that is charged for it. log: its file,
    if it logs requests.
    """

    name: str
    ports: dict[str, int]
    pids: dict[str, int]
    log: Path | None = None

    def empty_log(self) -> None:
        """So that the next run writes to memory that was used before: that of a virtual machine is slow at first."""
        if self.log:
            os.truncate(self.log, 0)


class Arena:
    """All processes of one run of the benchmark; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()
        self.nodes: dict[str, list[servers.Running]] = {}

    def __enter__(self) -> Arena:
        for protocol, start in (("redis", servers.redis_server), ("memcache", servers.memcached)):
            options = ("-m", "256") if protocol == "memcache" else ()
            self.nodes[protocol] = [self.stack.enter_context(start(*options)) for _ in range(3)]
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def direct(self) -> Side:
        """One of the servers: what the load generator and a server can do at all. It does not hold all keys."""
        first = {protocol: nodes[0] for protocol, nodes in self.nodes.items()}
        return Side(DIRECT, {p: node.port for p, node in first.items()}, {p: node.pid for p, node in first.items()})

    def twemproxy(self) -> Side:
        """One nutcracker for each protocol."""
        running = {}
        for protocol, nodes in self.nodes.items():
            pool = POOL.format(protocol=protocol, is_redis=str(protocol == "redis").lower())
            pool += "".join(f"   - {node.address}:1\n" for node in nodes)
            running[protocol] = self.stack.enter_context(servers.nutcracker(pool, self.folder))
        ports = {protocol: server.port for protocol, server in running.items()}
        return Side(TWEMPROXY, ports, {protocol: server.pid for protocol, server in running.items()})

    def leveled(self) -> Side:
        """One worker, with the same servers as caches above a file that is never asked: all keys are there."""
        return self.fleet(1, 0, BELOW)

    def fleet(self, workers: int, access_sample: float = 0, below: str = "") -> Side:
        """This project with so many workers, which log this share of the requests, maybe with a second level."""
        ports = {protocol: free_port() for protocol in self.nodes}
        config = f"[proxy]\nworkers = {workers}\n[log]\naccess_sample = {access_sample}\n"
        for protocol, nodes in self.nodes.items():
            listed = ", ".join(f'"{node.address}:1"' for node in nodes)
            config += INSTANCE.format(protocol=protocol, port=ports[protocol], nodes=listed) + below
        fleet = self.stack.enter_context(Fleet(config, self.folder))
        more = f", {access_sample:g} logged" if access_sample else ", 2 levels" if below else ""
        name = f"{workers} worker{'s' * (workers > 1)}{more}"
        return Side(name, ports, dict.fromkeys(ports, fleet.process.pid), fleet.log if access_sample else None)


def fill(side: Side, protocol: str) -> None:
    """Store every key of the key space through this side."""
    with socket.create_connection(("127.0.0.1", side.ports[protocol]), timeout=30) as sock, sock.makefile("rb") as file:
        for first in range(0, KEYSPACE, BATCH):
            sock.sendall(b"".join(store(protocol, number) for number in range(first, first + BATCH)))
            for _ in range(BATCH):
                reply = file.readline()
                if reply not in (b"+OK\r\n", b"STORED\r\n"):
                    raise RuntimeError(f"{side.name} does not store {protocol} keys: {reply!r}")


def store(protocol: str, number: int) -> bytes:
    """The request that stores one key."""
    key, value = f"key:{number:012}", VALUE
    if protocol == "redis":
        return words("SET", key, value)
    return f"set {key} 0 0 {len(value)}\r\n{value}\r\n".encode()


def words(*argv: str) -> bytes:
    """A redis request."""
    return f"*{len(argv)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in argv)


def misses(side: Side, protocol: str) -> Iterator[str]:
    """Some keys that this side does not find: it places them on another node than the side which stored them."""
    with socket.create_connection(("127.0.0.1", side.ports[protocol]), timeout=30) as sock, sock.makefile("rb") as file:
        for number in range(0, KEYSPACE, KEYSPACE // 100):
            key = f"key:{number:012}"
            sock.sendall(words("GET", key) if protocol == "redis" else f"get {key}\r\n".encode())
            head = file.readline()
            if head not in (f"${len(VALUE)}\r\n".encode(), f"VALUE {key} 0 {len(VALUE)}\r\n".encode()):
                yield f"{key}: {head!r}"
                continue
            for _ in range(1 if protocol == "redis" else 2):
                file.readline()
