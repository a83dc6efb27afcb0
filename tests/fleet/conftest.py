"""A real fleet before real redis-servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.fleet import COMMAND, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running


@dataclass(frozen=True, slots=True)
class RedisFleet:
    """The fleet, the port of its instance, and its configuration as a text that can be changed."""

    fleet: Fleet
    port: int
    config: str


StartRedisFleet = Callable[..., RedisFleet]


@pytest.fixture
def start_redis_fleet(redis_nodes: list[Running], tmp_path: Path) -> Iterator[StartRedisFleet]:
    """`start_redis_fleet(workers=2, drain=1)`: a fleet whose workers are all ready, stopped at the test's end."""
    fleets: list[Fleet] = []

    def start(workers: int = 2, drain: float = 1, command: Sequence[str] = COMMAND) -> RedisFleet:
        port = free_port()
        servers = ", ".join(f'"{node.address}:1 n{number}"' for number, node in enumerate(redis_nodes))
        config = f"""[proxy]
workers = {workers}
drain_timeout_s = {drain}

[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{servers}]
"""
        fleet = Fleet(config, tmp_path, command=command)
        fleets.append(fleet)
        fleet.wait_log(f"worker.ready slot={workers - 1} ")
        fleet.wait_log("worker.ready slot=0 ")
        return RedisFleet(fleet, port, config)

    yield start
    for fleet in fleets:
        fleet.stop()
