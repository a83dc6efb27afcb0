"""Fleets over tables of real mariadbds, and clients as applications have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hyper_proxy.config.model import Server
from hyper_proxy.hashing import build
from tests.kit.fleet import Fleet
from tests.kit.mariadb import DATABASE, FULL_COLUMNS, FULL_TABLE, PASSWORD, USER, MariaDb
from tests.kit.ports import free_port

WAIT_S = 20.0
FULL = f'{{ name = "kv", {FULL_COLUMNS} }}'
PATIENT = "timeout = { connect_ms = 1000, read_ms = 5000, queue_ms = 5000 }"


class Front:
    """A fleet with a redis and a memcache front over one key space; servers are called a, b ..."""

    def __init__(
        self,
        folder: Path,
        servers: list[MariaDb],
        writers: list[MariaDb],
        settings: str,
        password: str,
        workers: int,
        table: str = FULL,
    ) -> None:
        self.ports = {"user": free_port(), "page": free_port()}
        self.settings, self.password = settings, password
        self.servers, self.writers = servers, writers
        self.workers = workers
        self.table = table
        self.fleet = Fleet(self.text(), folder)
        names = [Server("h", 1, name=self.name(number)) for number in range(len(servers))]
        self.placement = build("", "ketama", "", names)
        self.opened: list[Any] = []

    @staticmethod
    def name(number: int) -> str:
        return chr(97 + number)

    def text(self) -> str:
        """The configuration."""
        texts = [f"[proxy]\nworkers = {self.workers}\ndrain_timeout_s = 1\n"]
        at = [f"{server.address} {self.name(number)}" for number, server in enumerate(self.servers)]
        writers = [f"{server.address} w{self.name(number)}" for number, server in enumerate(self.writers)]
        for name, protocol, allow in (("user", "redis", "KEYS"), ("page", "memcache", "FLUSH_ALL")):
            texts.append(f"""
[[instance]]
name = "{name}"
protocol = "{protocol}"
listen = ["127.0.0.1:{self.ports[name]}"]
allow = ["{allow}"]
  [[instance.level]]
  storage = "mysql"
  servers = {json.dumps(at)}
  writers = {json.dumps(writers)}
  username = "{USER}"
  password = {json.dumps(self.password)}
  database = "{DATABASE}"
  table = {self.table}
  {self.settings}
""")
        return "".join(texts)

    def redis(self) -> redis.Redis:
        """redis-py with one try for each command."""
        client = redis.Redis(port=self.ports["user"], protocol=2, socket_timeout=WAIT_S, retry=Retry(NoBackoff(), 0))
        self.opened.append(client)
        return client

    def memcache(self) -> Any:
        """pymemcache with its usual serializer, which marks what is no text by flags."""
        client = pymemcache.Client(
            ("127.0.0.1", self.ports["page"]), timeout=WAIT_S, default_noreply=False,
            serde=pymemcache.serde.pickle_serde,
        )  # fmt: skip
        self.opened.append(client)
        return client

    def keys_on(self, shard: int, count: int) -> list[str]:
        """Some keys of one server."""
        found: list[str] = []
        number = 0
        while len(found) < count:
            key = f"key{number}".encode()
            if self.placement.locate(key, 0, len(key)) == shard:
                found.append(key.decode())
            number += 1
        return found

    def node(self, label: str = "a", instance: str = "user") -> dict[str, Any]:
        """A node's statistics."""
        figures: dict[str, Any] = self.fleet.stats()["instances"][instance]["nodes"][label]
        return figures

    def stop(self) -> None:
        for one in self.opened:
            one.close()
        self.fleet.stop()
        log = self.fleet.read_log()
        assert "Traceback" not in log, log


StartFront = Callable[..., Front]


@pytest.fixture
def start_front(tmp_path: Path) -> Iterator[StartFront]:
    """`start_front([server], writers, settings)`: a fleet of this test alone; `make`: the table's SQL."""
    started: list[Front] = []

    def start(
        servers: list[MariaDb],
        writers: list[MariaDb] | None = None,
        settings: str = PATIENT,
        password: str = PASSWORD,
        workers: int = 1,
        table: str = FULL,
        make: str = FULL_TABLE,
    ) -> Front:
        for server in (*servers, *(writers or [])):
            server.make_table(make)
        started.append(Front(tmp_path, servers, writers or [], settings, password, workers, table))
        return started[-1]

    yield start
    for front in started:
        front.stop()
