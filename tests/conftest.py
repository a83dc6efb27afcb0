"""Fixtures; what they are made of lives in tests/kit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hyper_proxy.storage.keyvalue import KeyValue
from tests.kit import servers
from tests.kit.fleet import Fleet
from tests.kit.key_values import KINDS, open_mysql, open_sqlite
from tests.kit.mariadb import MariaDb
from tests.kit.servers import Running


@pytest.fixture(scope="session")
def _redis_trio() -> Iterator[list[Running]]:
    nodes = [servers.redis_server() for _ in range(3)]
    yield nodes
    for node in nodes:
        node.stop()


@pytest.fixture(scope="session")
def _memcached_trio() -> Iterator[list[Running]]:
    nodes = [servers.memcached() for _ in range(3)]
    yield nodes
    for node in nodes:
        node.stop()


@pytest.fixture(scope="session")
def _mariadb() -> Iterator[MariaDb]:
    with MariaDb() as server:
        yield server


@pytest.fixture
def mariadb(_mariadb: MariaDb) -> MariaDb:
    """A mariadbd with an empty table `kv` that has a column for everything: not to be killed or frozen."""
    _mariadb.make_table()
    return _mariadb


@pytest.fixture(params=KINDS)
def kv(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyValue]:
    """A key-value storage of each kind, empty."""
    if request.param == "sqlite":
        with open_sqlite(tmp_path) as kv:
            yield kv
        return
    with open_mysql(request.getfixturevalue("mariadb")) as kv:
        yield kv


@pytest.fixture
def redis_nodes(_redis_trio: list[Running]) -> list[Running]:
    """Three empty redis-servers, the same processes in all tests: not to be killed or frozen."""
    for node in _redis_trio:
        servers.flush_redis(node)
    return _redis_trio


@pytest.fixture
def memcached_nodes(_memcached_trio: list[Running]) -> list[Running]:
    """Three empty memcacheds, the same processes in all tests: not to be killed or frozen."""
    for node in _memcached_trio:
        servers.flush_memcached(node)
    return _memcached_trio


@pytest.fixture
def own() -> Iterator[Callable[[Running], Running]]:
    """`own(redis_server())`: a server of this test alone, stopped at its end."""
    mine: list[Running] = []

    def keep(server: Running) -> Running:
        mine.append(server)
        return server

    yield keep
    for server in mine:
        server.stop()


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A pipe with a name, and the descriptor of somebody who might read it."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reader
    os.close(reader)


@pytest.fixture
def start_fleet(tmp_path: Path) -> Iterator[Callable[[str], Fleet]]:
    """`start_fleet(config)`: a fleet that is ready, stopped at the test's end."""
    fleets: list[Fleet] = []

    def start(config: str) -> Fleet:
        fleet = Fleet(config, tmp_path)
        fleets.append(fleet)
        return fleet

    yield start
    for fleet in fleets:
        fleet.stop()
