"""Caches of real servers above a storage in memory, which is as slow as it is told to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import gevent
import gevent.event
import pytest

from hyper_proxy.config.model import Backoff, Level, Server, Timeout, WriteBack
from hyper_proxy.hashing import Placement
from hyper_proxy.hashing import build as build_placement
from hyper_proxy.stack import CACHES
from hyper_proxy.storage.keyvalue import Change, Expire, Item, KeyValue, Put, Remove
from hyper_proxy.tunnel.behind import ACTIVE, Behind
from hyper_proxy.tunnel.gate import Gate
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.tier import Pace, Tier
from tests.conn_pool.conftest import until
from tests.kit.servers import Running, memcached, redis_server

KEYS = [b"key:%d" % number for number in range(40)]

T = TypeVar("T")
KINDS: dict[str, Callable[[], Running]] = {"redis": redis_server, "memcache": memcached}


class Memory(KeyValue):
    """The storage that knows: in memory, with a log of what it was asked, as slow as it is told to be."""

    kind = "memory"

    def __init__(self) -> None:
        self.items: dict[bytes, Item] = {}
        self.asked: list[bytes] = []
        self.version = 0
        self.pause: Callable[[], None] = lambda: None

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        self.asked += keys
        self.pause()
        found = [self.items.get(key) for key in keys]
        self.pause()
        return found

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        self.pause()
        edits, result = change([self.items.get(key) for key in keys])
        versions = []
        for key, edit in zip(keys, edits, strict=True):
            versions.append(0)
            if isinstance(edit, Put):
                self.version += 1
                versions[-1] = self.version
                self.items[key] = Item(edit.value, edit.flags, edit.expires_at, self.version)
            elif isinstance(edit, Remove):
                self.items.pop(key, None)
            elif isinstance(edit, Expire):
                old = self.items[key]
                self.items[key] = Item(old.value, old.flags, edit.expires_at, old.version)
        self.pause()
        return result, tuple(versions)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        self.update([key for key, _ in entries], lambda items: ([put for _, put in entries], None))

    def count(self) -> int:
        return len(self.items)

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        return 0, list(self.items)

    def clear(self) -> None:
        self.items.clear()


def servers_of(nodes: Sequence[Running]) -> tuple[Server, ...]:
    """With aliases, so that keys are always at the same places."""
    return tuple(Server("127.0.0.1", node.port, name=f"s{at}") for at, node in enumerate(nodes))


def placement_of(level: Level) -> Placement:
    """Where its servers have keys."""
    return build_placement("", "ketama", "", level.servers)


class Stack:
    """Levels above a Memory."""

    def __init__(
        self,
        kinds: Sequence[str],
        servers: Sequence[Sequence[Running]],
        write_back: WriteBack,
        pace: Pace,
        policies: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.memory = Memory()
        self.servers = servers
        timeout, backoff = Timeout(500, 2000, 2000), Backoff(20, 50)
        levels = [
            Level(kind, servers_of(nodes), timeout=timeout, backoff=backoff, **policy)
            for kind, nodes, policy in zip(kinds, servers, policies or [{}] * len(kinds), strict=True)
        ]
        self.tiers = [
            Tier("user", level, write_back, CACHES[level.storage](level), placement_of(level), None, pace)
            for level in levels
        ]
        self.gate = Gate("user", write_back.max_below or 100, write_back.below_wait_ms)
        waits = bool(levels) and levels[-1].write == "behind"
        self.behind = Behind("user", self.memory, levels[-1].max_behind_bytes) if waits else None
        self.levels = Levels(self.tiers, self.behind or self.memory, self.gate)

    def read(self, *keys: bytes) -> list[bytes | None]:
        """The values."""
        return [item.value if item else None for item in self.levels.read_many(keys)]

    def kept(self, key: bytes, depth: int = 0) -> Any:
        """What a tier says of a key."""
        (part,) = self.tiers[depth].split([key])
        return self.tiers[depth].read(part)[0]

    def is_answered(self) -> bool:
        """Has the first tier answered everything that it was asked?"""
        lanes = [lane for node in self.tiers[0].nodes for lane in node.lanes]
        return not any(lane.in_flight or lane.queued for lane in lanes)

    def fill(self, *keys: bytes) -> None:
        """Read until the keys are in the first tier: one that is late, as on a busy machine, keeps nothing."""
        for key in keys:
            until(lambda key=key: self.read(key) and isinstance(self.kept(key), Item), f"{key!r} is kept")  # type: ignore[misc]

    def wait_kept(self, *keys: bytes, depth: int = 0) -> None:
        """Until the keys are in a tier: a fill is not waited for by anybody."""
        for key in keys:
            until(lambda key=key: isinstance(self.kept(key, depth), Item), f"{key!r} is filled in")  # type: ignore[misc]


def begin_to_read(stack: Stack, key: bytes) -> tuple[gevent.Greenlet, gevent.event.Event]:
    """A reader that has read what is below now and does not go on until the event is set; others read on."""
    reading, go_on = gevent.event.Event(), gevent.event.Event()

    def pause() -> None:  # there are two in a read: before it and after it
        if reading.is_set():
            go_on.wait(10)
        reading.set()

    stack.memory.pause = pause
    reader = gevent.spawn(stack.read, key)
    assert reading.wait(10)
    stack.memory.pause = lambda: None
    return reader, go_on


Build = Callable[..., Stack]


@pytest.fixture
def build() -> Iterator[Build]:
    """`build("memcache", "redis")`: two servers for each tier, from the top."""
    running: list[Running] = []
    stacks: list[Stack] = []

    def start(
        *kinds: str,
        ttl: float = 100,
        pace: Pace | None = None,
        negative_ttl: float = 0,
        max_below: int = 0,
        below_wait_ms: int = 200,
        policies: Sequence[dict[str, Any]] = (),
    ) -> Stack:
        tiers = [[KINDS[kind](), KINDS[kind]()] for kind in kinds]
        running.extend(node for nodes in tiers for node in nodes)
        write_back = WriteBack(ttl, negative_ttl=negative_ttl, max_below=max_below, below_wait_ms=below_wait_ms)
        stacks.append(Stack(kinds, tiers, write_back, pace or Pace(), policies))
        return stacks[-1]

    yield start
    for stack in stacks:
        stack.levels.release(None)
    for node in running:
        node.stop()


@pytest.fixture(autouse=True)
def nothing_waits_any_more() -> Iterator[None]:
    """What waits to be written is a worker's, and would be waited for when another test ends a worker here."""
    yield
    ACTIVE.clear()
