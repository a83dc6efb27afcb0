"""What a lane keeps back while the process is busy, and when it leaves."""

from __future__ import annotations

import gevent

from hyper_proxy.conn_pool.node import Node
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import KEYS, Pool, turn, until, value, wait
from tests.kit.fakes import FakeServer


def test_a_busy_process_keeps_back_what_would_wait_at_the_server(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node)
    for _ in range(20):  # busy for a moment only: the moment may have passed before the second request is looked at
        fake.behave("good")
        until(lambda: pool.get(lane, "first") == [value("first")], "the server is well")
        fake.behave("silent")
        ahead = pool.post(lane, encode("GET", "ahead"))
        until(lambda: lane.in_flight, "the request leaves")
        pool.work()
        behind = pool.post(lane, encode("GET", "behind"))
        turn()
        kept = (lane.in_flight, lane.queued) == (1, 1)
        until(lambda: not lane.queued, "it leaves all the same, though nothing has been answered")
        wait(ahead)
        wait(behind)
        if kept:
            break
    assert kept


def test_what_was_kept_back_leaves_with_the_answer(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node)
    for _ in range(20):
        pool.work()
        assert pool.get(lane, *KEYS) == [value(key) for key in KEYS]
        jobs = [gevent.spawn(pool.get, lane, key) for key in KEYS for _ in range(3)]
        gevent.joinall(jobs, timeout=10, raise_error=True)
        assert [job.value for job in jobs] == [[value(key)] for key in KEYS for _ in range(3)]
    assert (fake.accepted, lane.in_flight, lane.queued) == (1, 0, 0)


def test_an_idle_process_keeps_nothing_back(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node)
    assert pool.get(lane, "first") == [value("first")]
    fake.behave("silent")
    pool.rest()
    ahead = pool.post(lane, encode("GET", "ahead"))
    turn()
    behind = pool.post(lane, encode("GET", "behind"))
    turn()
    assert (lane.in_flight, lane.queued) == (2, 0)
    wait(ahead)
    wait(behind)


def test_what_is_kept_back_when_the_connection_ends_leaves_on_the_next(
    pool: Pool, node: Node, fake: FakeServer
) -> None:
    lane = pool.open(node)
    assert pool.get(lane, "first") == [value("first")]
    fake.behave("closes")
    for _ in range(10):
        pool.work()
        jobs = [gevent.spawn(pool.get, lane, key) for key in KEYS]
        gevent.joinall(jobs, timeout=10, raise_error=True)
    fake.behave("good")
    until(lambda: pool.get(lane, "again") == [value("again")], "the server is asked again")
    assert (lane.in_flight, lane.queued) == (0, 0)
