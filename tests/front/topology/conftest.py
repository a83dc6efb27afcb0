"""Topologies through a whole fleet: real clusters and sentinels, unchanged clients in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.front.topology.cluster_kit import Cluster, config
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port


class Proxied:
    """A cluster behind a fleet."""

    def __init__(self, stack: ExitStack, folder: Path, masters: int, replicas: int, more: str) -> None:
        self.stack = stack
        self.cluster = stack.enter_context(Cluster(folder, masters, replicas))
        self.port = free_port()
        self.config = config(self.cluster.servers, self.port, more)
        self.fleet = stack.enter_context(Fleet(self.config, folder))

    def client(self, **options: Any) -> Any:
        """A client that knows nothing of clusters."""
        return self.stack.enter_context(redis.Redis(port=self.port, **options))

    def nodes(self) -> dict[str, Any]:
        """The servers as /stats shows them."""
        shown: dict[str, Any] = self.fleet.stats()["instances"]["shop"]["nodes"]
        return shown


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Callable[..., Proxied]]:
    """`proxied(masters, replicas, more)`: a cluster of this test alone, behind a fleet; `more`: lines of its level."""
    with ExitStack() as stack:
        yield lambda masters=3, replicas=0, more="": Proxied(stack, tmp_path, masters, replicas, more)


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    with ExitStack() as stack:
        yield Proxied(stack, tmp_path_factory.mktemp("cluster"), 3, 1, "")


@pytest.fixture
def shared(_shared: Proxied) -> Proxied:
    """Three masters with a replica each behind a fleet, empty; not to be broken."""
    _shared.client().flushall()
    return _shared
