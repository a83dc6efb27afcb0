"""Servers that keep their keys on disk: what is read while one loads them after a restart, and when it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.kit.fleet import Fleet
from tests.kit.loading import VALUE, load_on, load_slowly
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

CONFIG = """[proxy]
workers = 1
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  hash = "crc32"
  distribution = "modula"
  servers = ["{0} a", "{1} b"]
  timeout = {{ connect_ms = 1000, read_ms = 1000, queue_ms = 1000 }}
  backoff = {{ base_ms = 20, max_ms = 100 }}
"""
KEYS = [f"key:{number}" for number in range(300)]
IN_TIME_S = 3.0


@dataclass
class Durable:
    """Two full servers with a disk behind a fleet."""

    fleet: Fleet
    servers: list[Running]
    port: int

    def keys(self, server: Running) -> list[str]:
        """All that it has."""
        with redis.Redis(port=server.port, decode_responses=True) as client:
            return sorted(client.scan_iter())

    def is_down(self, label: str) -> bool:
        """Is it shown as down?"""
        return bool(self.fleet.stats()["instances"]["shop"]["nodes"][label]["down"])


@pytest.fixture
def durable(own: Callable[[Running], Running], tmp_path: Path) -> Iterator[Durable]:
    servers = []
    for name in "ab":
        (tmp_path / name).mkdir()
        options = ["--appendonly", "yes", "--appendfsync", "always", "--rdbcompression", "no"]
        servers.append(own(redis_server("--dir", str(tmp_path / name), "--dbfilename", "all.rdb", *options)))
    port = free_port()
    with Fleet(CONFIG.format(*(one.address for one in servers), port=port), tmp_path) as fleet:
        with redis.Redis(port=port) as client:
            for key in KEYS:
                client.set(key, key + VALUE)
        yield Durable(fleet, servers, port)


def answer(client: redis.Redis, key: str) -> str:
    """The value, or the error; it must come in time."""
    began = time.monotonic()
    try:
        found = client.execute_command("GET", key).decode()
    except redis.RedisError as error:
        found = f"{type(error).__name__}: {error}"
    assert time.monotonic() - began < IN_TIME_S
    return found


def test_what_was_acknowledged_is_there_after_a_restart(durable: Durable) -> None:
    server = durable.servers[0]
    with redis.Redis(port=durable.port) as client:
        client.incr("count")
        server.kill()
        server.start()
        wait_for(lambda: answer(client, durable.keys(server)[0]).endswith(VALUE), "it is served again")
        assert [answer(client, key) for key in KEYS] == [key + VALUE for key in KEYS]
        assert client.incr("count") == 2


def test_a_server_that_loads_says_so_to_its_clients(durable: Durable) -> None:
    loading, well = durable.servers
    here, there = durable.keys(loading), durable.keys(well)
    assert len(here) > 100 and len(there) > 100
    load_slowly(loading)
    with redis.Redis(port=durable.port, retry=Retry(NoBackoff(), 0)) as client:
        for key, other in zip(here[:20], there[:20], strict=True):
            told = answer(client, key)
            assert told.startswith("BusyLoadingError: "), told
            assert f"node 'a ({loading.address})': Redis is loading the dataset in memory" in told
            assert answer(client, other) == other + VALUE
        with pytest.raises(redis.exceptions.BusyLoadingError, match=r"\(1 of 2 keys\)"):
            client.execute_command("MGET", here[0], there[0])
        assert durable.is_down("a") and not durable.is_down("b")
        assert set(durable.fleet.stats()["instances"]["shop"]["nodes"]["a"]["errors"]) <= {"loading", "refused"}
        durable.fleet.wait_log("kind=loading")
        load_on(loading)
        wait_for(lambda: answer(client, here[0]).endswith(VALUE), "it is served")
        assert [answer(client, key) for key in here] == [key + VALUE for key in here]
        wait_for(lambda: not durable.is_down("a"), "it is up again")
