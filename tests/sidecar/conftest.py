"""A fleet with something to show: two redis-servers, one instance, one worker or more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.http import Answer, ask
from tests.kit.ports import free_port
from tests.kit.servers import Running

HOSTILE = "<script>alert(1)</script>"
"""The alias of a server: any visible characters are allowed."""


@dataclass(frozen=True, slots=True)
class Shop:
    """The fleet, its instance's port, and its configuration as a text that can be changed."""

    fleet: Fleet
    port: int
    config: str

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=2, password="hush")

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """A request to the sidecar; `_` in the name of a header stands for `-`."""
        connection = HTTPConnection("127.0.0.1", self.fleet.admin_port, timeout=30)
        try:
            return ask(connection, method, path, body, headers)
        finally:
            connection.close()


@pytest.fixture
def start_shop(redis_nodes: list[Running], tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """`start_shop(workers=2, servers=[...], extra="")`: stopped at the test's end; its second alias is hostile."""
    fleets: list[Fleet] = []

    def start(workers: int = 1, servers: list[Running] | None = None, extra: str = "") -> Shop:
        port = free_port()
        nodes = servers or redis_nodes[:2]
        names = ["plain", HOSTILE]
        listed = ", ".join(f'"{node.address}:1 {name}"' for node, name in zip(nodes, names, strict=True))
        config = f"""[proxy]
workers = {workers}
drain_timeout_s = 1
{extra}
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
password = "hush"
  [[instance.level]]
  storage = "redis"
  timeout = {{ read_ms = 500 }}
  servers = [{listed}]
"""
        fleet = Fleet(config, tmp_path)
        fleets.append(fleet)
        for slot in range(workers):
            fleet.wait_log(f"worker.ready slot={slot} ")
        return Shop(fleet, port, config)

    yield start
    for fleet in fleets:
        fleet.stop()
