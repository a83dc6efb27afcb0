"""Nodes and lanes before servers that misbehave on order, and who asks on them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from types import ModuleType
from typing import Any

import gevent
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Backoff, Level, Server, Timeout
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.redis import RedisGreeting, encode
from hyper_proxy.storage.resp import RespParser
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.plain import plain

GREETING = RedisGreeting("", "", 0, 2)
PATIENCE_S = 10  # nothing here may take so long
KEYS = [f"key{number}" for number in range(50)]

Reply = bytes | BackendError


@dataclass(frozen=True, slots=True)
class Pool:
    """The modules under test, in one of their forms."""

    lane: ModuleType
    gather: ModuleType
    resp: ModuleType
    hold: ModuleType

    def open(self, node: Node, private: bool = False) -> Any:
        """A lane of this form."""
        lane = self.lane.Lane(node, GREETING, private)
        node.lanes.add(lane)
        return lane

    def post(self, lane: Any, *requests: bytes) -> Any:
        """Submit; the result is the gather."""
        gather = self.gather.Gather()
        for request in requests:
            lane.submit(request, READ, gather, gather.expect())
        return gather

    def ask(self, lane: Any, *requests: bytes) -> list[Reply]:
        """Submit, and wait for all replies."""
        gather = self.post(lane, *requests)
        wait(gather)
        replies: list[Reply] = gather.slots
        return replies

    def work(self) -> None:
        """Use a core until the process counts as busy."""
        while not self.hold.LOAD.is_busy(monotonic()):
            sum(range(10_000))

    def rest(self) -> None:
        """Use none until it does not."""
        until(lambda: not self.hold.LOAD.is_busy(monotonic()), "the process is idle")

    def get(self, lane: Any, *keys: str) -> list[Reply]:
        """GET of each key."""
        return self.ask(lane, *(encode("GET", key) for key in keys))


def wait(gather: Any) -> None:
    """Wait for a gather, in the greenlet that made it."""
    with gevent.Timeout(PATIENCE_S):
        gather.wait()


def value(key: str) -> bytes:
    """The fakes' reply to GET."""
    text = f"value of {key}"
    return f"${len(text)}\r\n{text}\r\n".encode()


def fault(reply: object) -> BackendError:
    """The error that came instead of a reply."""
    assert isinstance(reply, BackendError), reply
    return reply


def turn(seconds: float = 0) -> None:
    """Let the loop go round."""
    gevent.sleep(seconds)


def until(check: Callable[[], object], what: str) -> None:
    """Let the loop turn until it is true."""
    for _ in range(1000):
        if check():
            return
        turn(0.005)
    raise AssertionError(what)


@pytest.fixture(params=["built", "plain"])
def pool(request: pytest.FixtureRequest) -> Pool:
    load = importlib.import_module if request.param == "built" else plain
    names = ("conn_pool.lane", "common.gather", "storage.resp", "conn_pool.hold")
    return Pool(*(load(f"hyper_proxy.{name}") for name in names))


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """Greets rightly, then behaves as it is told."""
    with FakeServer(REDIS, polite=True) as server:
        yield server


def node_for(
    server: Server,
    pool: Pool | None = None,
    timeout: Timeout | None = None,
    backoff: Backoff | None = None,
    **level: Any,
) -> Node:
    """A node with short deadlines."""
    settings = Level(
        "redis", (server,), timeout=timeout or Timeout(200, 200, 200), backoff=backoff or Backoff(50, 400), **level
    )
    return Node("user", settings, server, pool.resp.RespParser if pool else RespParser, GREETING)


@pytest.fixture
def node(fake: FakeServer, pool: Pool) -> Node:
    """The node of the fake."""
    return node_for(Server("127.0.0.1", fake.port, name="a"), pool)
