"""The lane of a master and its replicas, when some of them take nothing more."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

from hyper_proxy.config.model import Server, Timeout
from hyper_proxy.conn_pool.asking import ask
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.topology.follow import FollowLane
from hyper_proxy.stats.classes import IDEMPOTENT, READ
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import GREETING, node_for, until, value
from tests.kit.fakes import REDIS, FakeServer

LARGE = encode("SET", "k", "x" * 20_000_000)


def test_reads_go_past_a_master_and_a_replica_that_are_stuck() -> None:
    with ExitStack() as stack:
        fakes = [stack.enter_context(FakeServer(REDIS, polite=True)) for _ in range(3)]
        lanes = [_open(fake) for fake in fakes]
        group: Any = SimpleNamespace(reads="replica")
        follow = FollowLane(group, GREETING, 0, lanes)
        for fake, lane in zip(fakes[:2], lanes[:2], strict=True):
            _stuff(fake, lane)
        assert follow.is_full(IDEMPOTENT) and not follow.is_full(READ)
        for number in range(4):
            assert ask(follow, encode("GET", f"key{number}"), READ) == value(f"key{number}")
        _stuff(fakes[2], lanes[2])
        assert follow.is_full(READ)


def _open(fake: FakeServer) -> Lane:
    node = node_for(Server("127.0.0.1", fake.port), timeout=Timeout(1000, 9000, 9000), max_pending_bytes=1 << 20)
    lane = node.lane(GREETING)
    assert ask(lane, encode("GET", "warm"), READ) == value("warm")
    return lane


def _stuff(fake: FakeServer, lane: Lane) -> None:
    """It reads nothing any more, and too much waits for it."""
    fake.behave("deaf")
    lane.submit(LARGE, IDEMPOTENT, None, 0)
    until(lambda: lane.is_full(READ), "it is full")
