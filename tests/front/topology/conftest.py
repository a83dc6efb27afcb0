"""Topologies through a whole fleet: real clusters and sentinels, unchanged clients in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.front.topology.cluster_kit import Cluster, config
from tests.front.topology.sentinel_kit import DOWN_AFTER_MS, OPEN, Secrets, Sentinels
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port


class Behind:
    """A fleet in front of something."""

    def __init__(self, stack: ExitStack, folder: Path, port: int, config: str) -> None:
        self.stack = stack
        self.port = port
        self.config = config
        self.fleet = stack.enter_context(Fleet(config, folder))

    def client(self, **options: Any) -> Any:
        """A client that knows nothing of topologies."""
        return self.stack.enter_context(redis.Redis(port=self.port, **options))

    def nodes(self) -> dict[str, Any]:
        """The servers as /stats shows them."""
        shown: dict[str, Any] = self.fleet.stats()["instances"]["shop"]["nodes"]
        return shown


class Proxied(Behind):
    """A cluster behind a fleet."""

    def __init__(self, stack: ExitStack, folder: Path, masters: int, replicas: int, more: str) -> None:
        self.cluster = stack.enter_context(Cluster(folder, masters, replicas))
        port = free_port()
        super().__init__(stack, folder, port, config(self.cluster.servers, port, more))


class Watched(Behind):
    """Masters of these names under sentinels behind a fleet."""

    def __init__(
        self, stack: ExitStack, folder: Path, names: tuple[str, ...], more: str, replicas: int, down_after_ms: int,
        secrets: Secrets,
    ) -> None:  # fmt: skip
        self.sentinels = stack.enter_context(Sentinels(folder, names, replicas, down_after_ms, secrets=secrets))
        port = free_port()
        lines = f"  masters = [{', '.join(repr(name) for name in names)}]\n{more}"
        super().__init__(stack, folder, port, config(self.sentinels.addresses, port, lines, "sentinel"))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    """`watched(names, more)`: these masters under three sentinels, behind a fleet; `more` are lines of the level."""
    with ExitStack() as stack:

        def start(
            names: tuple[str, ...] = ("alpha",), more: str = "", replicas: int = 1, down_after_ms: int = DOWN_AFTER_MS,
            secrets: Secrets = OPEN,
        ) -> Watched:  # fmt: skip
            return Watched(stack, tmp_path, names, more, replicas, down_after_ms, secrets)

        yield start


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
