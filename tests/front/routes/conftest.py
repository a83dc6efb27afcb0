"""Routes through a whole fleet: pools of real servers, an unchanged client in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server

START: dict[str, Callable[[], Running]] = {"redis": redis_server, "memcache": memcached}
READ_MS = 1500  # a server that is well is not too late on a busy machine either
TIMES = f"timeout = {{ connect_ms = {READ_MS}, read_ms = {READ_MS} }}\n  backoff = {{ base_ms = 20, max_ms = 50 }}"


class Routed:
    """Pools of servers, by name, behind one instance; "main" is that of the level. below: lines of a further level."""

    def __init__(
        self, stack: ExitStack, folder: Path, kind: str, sizes: dict[str, int], route: str, below: str
    ) -> None:
        self.stack = stack
        self.kind = kind
        self.below = below
        self.pools = {name: [stack.enter_context(START[kind]()) for _ in range(size)] for name, size in sizes.items()}
        self.clients: dict[tuple[str, int], Any] = {}
        self.port = free_port()
        self.fleet = stack.enter_context(Fleet(self.config(route), folder))

    def config(self, route: str) -> str:
        """The configuration with this route."""
        servers = {
            name: ", ".join(f'"{server.address} {name}{index}"' for index, server in enumerate(pool))
            for name, pool in self.pools.items()
        }
        pools = "".join(
            f'    [[instance.level.pool]]\n    name = "{name}"\n    servers = [{servers[name]}]\n'
            for name in self.pools if name != "main"
        )  # fmt: skip
        return (
            f'[proxy]\nworkers = 2\n[[instance]]\nname = "shop"\nprotocol = "{self.kind}"\n'
            f'listen = ["127.0.0.1:{self.port}"]\nallow = ["{"FLUSHALL" if self.kind == "redis" else "FLUSH_ALL"}"]\n'
            f'  [[instance.level]]\n  storage = "{self.kind}"\n  servers = [{servers["main"]}]\n  route = {route}\n'
            f"  {TIMES}\n{pools}{self.below}"
        )

    def client(self) -> Any:
        """A client of the proxy."""
        return self.to(self.port)

    def to(self, port: int) -> Any:
        """A client of whoever listens there."""
        if self.kind == "redis":
            return self.stack.enter_context(redis.Redis(port=port))
        client = pymemcache.Client(("127.0.0.1", port), timeout=10, default_noreply=False)
        self.stack.callback(client.close)
        return client

    def server(self, pool: str, index: int) -> Any:
        """A client of a server, one for all questions."""
        known = self.clients.get((pool, index))
        if known is None:
            known = self.clients[pool, index] = self.to(self.pools[pool][index].port)
        return known

    def stuck(self, label: str) -> int:
        """Bytes that wait to be sent to a server."""
        waiting: int = self.fleet.stats()["instances"]["shop"]["nodes"][label]["pending_bytes"]
        return waiting

    def kept(self, pool: str, key: str) -> bytes | None:
        """What the servers of a pool have."""
        found = [self.server(pool, index).get(key) for index in range(len(self.pools[pool]))]
        return next((value for value in found if value is not None), None)


@pytest.fixture(params=["redis", "memcache"])
def kind(request: pytest.FixtureRequest) -> str:
    """The protocol in front and the servers behind."""
    return str(request.param)


@pytest.fixture
def routed(tmp_path: Path, kind: str) -> Iterator[Callable[..., Routed]]:
    """Starts pools of these sizes behind an instance with this route, maybe above a further level."""
    with ExitStack() as stack:
        yield lambda sizes, route, below="": Routed(stack, tmp_path, kind, sizes, route, below)
