"""Fleets before real redis-servers, raw connections to them, and a single server as the oracle."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hyper_proxy.config.model import Server
from hyper_proxy.hashing import build
from tests.kit import servers
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.protocol.raw import Raw

IMPATIENT = "timeout = { connect_ms = 200, read_ms = 300, queue_ms = 300 }\n  backoff = { base_ms = 20, max_ms = 100 }"
DEADLINE_S = 0.3
LATE_S = 5.0  # on a machine that is busy
POLICIES = {"user": "", "nil": 'on_partial = "nil"', "element": 'on_partial = "element"'}

ALLOW = ["FLUSHALL", "FLUSHDB", "KEYS"]
WAIT_S = 20.0
LEVEL = 'hash = "murmur"\n  distribution = "ketama"\n  hash_tag = "{}"\n'


def instance(name: str, port: int, nodes: list[str], settings: str = "", level: str = "") -> str:
    """An instance of the configuration; the nodes are called a, b, c ..."""
    entries = ", ".join(f'"{node}:1 {chr(97 + number)}"' for number, node in enumerate(nodes))
    return f"""
[[instance]]
name = "{name}"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
{settings}
  [[instance.level]]
  storage = "redis"
  {LEVEL}  servers = [{entries}]
  {level}
"""


class Proxy:
    """A fleet with several redis instances before the same nodes."""

    def __init__(
        self,
        folder: Path,
        nodes: list[str],
        instances: dict[str, str] | None = None,
        level: str = "",
        workers: int = 2,
        env: dict[str, str] | None = None,
        head: str = "",
    ) -> None:
        self.nodes = nodes
        wanted = instances or {"user": ""}
        self.ports = {name: free_port() for name in wanted}
        texts = [instance(name, self.ports[name], nodes, text, level) for name, text in wanted.items()]
        self.config = f"{head}[proxy]\nworkers = {workers}\ndrain_timeout_s = 1\n{''.join(texts)}"
        self.fleet = Fleet(self.config, folder, env)
        for slot in range(workers):
            self.fleet.wait_log(f"worker.ready slot={slot} ")
        self.placement = build("murmur", "ketama", "{}", [Server("h", 1, name=chr(97 + i)) for i in range(len(nodes))])
        self.opened: list[Any] = []

    @property
    def port(self) -> int:
        """Of the first instance."""
        return next(iter(self.ports.values()))

    def raw(self, name: str = "user") -> Raw:
        """A raw connection, closed at the test's end."""
        self.opened.append(Raw(self.ports[name]))
        return self.opened[-1]

    def client(self, name: str = "user", **options: Any) -> redis.Redis:
        """redis-py with one try per command, closed at the test's end."""
        settings = {"protocol": 2, "socket_timeout": WAIT_S, "retry": Retry(NoBackoff(), 0), **options}
        self.opened.append(redis.Redis(port=self.ports[name], **settings))
        return self.opened[-1]

    def shard(self, key: bytes | str) -> int:
        """The index of a key's node."""
        data = key.encode() if isinstance(key, str) else key
        return int(self.placement.locate(data, 0, len(data)))

    def keys_on(self, shard: int, count: int, prefix: str = "k") -> list[str]:
        """Some keys of one node."""
        found: list[str] = []
        number = 0
        while len(found) < count:
            if self.shard(f"{prefix}{number}") == shard:
                found.append(f"{prefix}{number}")
            number += 1
        return found

    def close_clients(self) -> None:
        """What the test has opened."""
        for one in self.opened:
            one.close()
        self.opened.clear()


INSTANCES = {
    "user": "",
    "open": f"allow = {ALLOW!r}".replace("'", '"'),
    "locked": 'password = "secret"',
    "small": "dbs = 2\n  [instance.limits]\n  max_value_bytes = 1000\n  max_arguments = 20",
}


@pytest.fixture(scope="session")
def _proxies(_redis_trio: list[Running], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bool], Proxy]]:
    started: dict[bool, Proxy] = {}

    def get(plain: bool) -> Proxy:
        if plain not in started:
            env = {"HYPER_PROXY_PLAIN": "1"} if plain else None
            nodes = [node.address for node in _redis_trio]
            folder = tmp_path_factory.mktemp("proxy")
            started[plain] = Proxy(folder, nodes, INSTANCES, "timeout = { read_ms = 5000 }", env=env)
        return started[plain]

    yield get
    for proxy in started.values():
        assert "Traceback" not in proxy.fleet.read_log(), proxy.fleet.read_log()
        proxy.fleet.stop()


@pytest.fixture
def proxy(_proxies: Callable[[bool], Proxy], redis_nodes: list[Running]) -> Iterator[Proxy]:
    """The shared fleet, as built, before three empty nodes."""
    one = _proxies(False)
    yield one
    one.close_clients()


@pytest.fixture(params=["built", "plain"])
def both_proxies(
    request: pytest.FixtureRequest, _proxies: Callable[[bool], Proxy], redis_nodes: list[Running]
) -> Iterator[Proxy]:
    """The shared fleet, as built and again from source."""
    one = _proxies(request.param == "plain")
    yield one
    one.close_clients()


@pytest.fixture(scope="session")
def _oracle() -> Iterator[Running]:
    with servers.redis_server() as server:
        yield server


@pytest.fixture
def oracle(_oracle: Running) -> Running:
    """One empty redis-server that holds all keys: what it says is right."""
    servers.flush_redis(_oracle)
    return _oracle


@pytest.fixture
def start_proxy(tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """`start_proxy(nodes, instances, level)`: a fleet of this test alone."""
    started: list[Proxy] = []

    def start(*args: Any, **options: Any) -> Proxy:
        started.append(Proxy(tmp_path, *args, **options))
        return started[-1]

    yield start
    for one in started:
        one.close_clients()
        log = one.fleet.read_log()
        one.fleet.stop()
        assert "Traceback" not in log, log


def encode(*words: bytes | str | int) -> bytes:
    """A request."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n%b" % (len(parts), b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))


def converse(port: int, data: bytes, step: int = 1 << 20) -> bytes:
    """Send raw bytes from one thread while another reads; all that came back until the end of the conversation."""
    nonce = secrets.token_hex(16).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as sock:

        def send() -> None:
            everything = data + encode("ECHO", nonce)
            for start in range(0, len(everything), step):
                sock.sendall(everything[start : start + step])

        sender = threading.Thread(target=send)
        sender.start()
        end = b"$32\r\n" + nonce + b"\r\n"
        reply = bytearray()
        while not reply.endswith(end):
            part = sock.recv(1 << 20)
            assert part, f"closed after {bytes(reply[-200:])!r}"
            reply += part
        sender.join()
    return bytes(reply[: -len(end)])
