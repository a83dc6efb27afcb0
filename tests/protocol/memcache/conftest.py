"""One worker before three memcacheds, and one memcached alone to compare it with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit import servers
from tests.kit.servers import Running
from tests.kit.worker import Worker
from tests.protocol.raw import Raw

INSTANCE = """
[[instance]]
name = "{name}"
protocol = "memcache"
listen = ["127.0.0.1:{number}"]
allow = ["flush_all"]
on_partial = "{on_partial}"
[[instance.level]]
storage = "memcache"
servers = [{servers}]
timeout = {{ connect_ms = 2000, read_ms = 1000 }}
"""


def instance(name: str, addresses: list[str], on_partial: str = "error", number: int = 21311) -> str:
    """The configuration of one instance over memcacheds."""
    quoted = ", ".join(f'"{address}:1 n{index}"' for index, address in enumerate(addresses))
    return INSTANCE.format(name=name, servers=quoted, on_partial=on_partial, number=number)


@pytest.fixture(scope="session")
def _alone() -> Iterator[Running]:
    with servers.memcached() as node:
        yield node


@pytest.fixture
def alone(_alone: Running) -> Running:
    """An empty memcached."""
    servers.flush_memcached(_alone)
    return _alone


@pytest.fixture(scope="session")
def _worker(_memcached_trio: list[Running]) -> Iterator[Worker]:
    with Worker(instance("mc", [node.address for node in _memcached_trio])) as worker:
        yield worker


@pytest.fixture
def worker(_worker: Worker, memcached_nodes: list[Running]) -> Worker:
    """Serves instance `mc` over three empty memcacheds."""
    return _worker


@pytest.fixture
def both_sides(worker: Worker, alone: Running) -> Iterator[tuple[Raw, Raw]]:
    """A connection to the proxy and one to the server."""
    sides = Raw(worker.ports["mc"]), Raw(alone.port)
    yield sides
    for side in sides:
        side.close()
