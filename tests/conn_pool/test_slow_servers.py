"""A lane before servers that are slow to accept, to read or to answer: whom it waits for, how long, with how much."""

from __future__ import annotations

import socket
from contextlib import suppress
from time import monotonic
from typing import Any

import gevent
import pytest

from hyper_proxy.config.model import Server, Timeout
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import Pool, fault, node_for, turn, until, value, wait
from tests.kit.fakes import FakeServer
from tests.kit.fakes.server import Conversation


def full(lane: Any) -> bool:
    """Must whoever wants to send wait?"""
    return bool(lane.pending_bytes > lane.max_pending_bytes)


@pytest.mark.parametrize("full", [False, True])
def test_a_server_that_never_accepts_is_given_up_at_the_connect_deadline(pool: Pool, full: bool) -> None:
    """With room in its queue the kernel connects and nobody greets; with a full queue there is no connection at all."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        crowd = []
        for _ in range(4 if full else 0):
            crowd.append(socket.socket())
            crowd[-1].setblocking(False)
            with suppress(BlockingIOError):
                crowd[-1].connect(listener.getsockname())
        node = node_for(Server("127.0.0.1", listener.getsockname()[1]), pool, Timeout(150, 150, 5000))
        with gevent.Timeout(3):
            error = fault(pool.get(pool.open(node), "a")[0])
        assert error.kind == "timeout"
        for sock in crowd:
            sock.close()


def test_a_server_that_does_not_read_costs_bounded_memory_and_bounded_time(pool: Pool, fake: FakeServer) -> None:
    node = node_for(Server("127.0.0.1", fake.port), pool, Timeout(200, 400, 150), max_pending_bytes=1 << 20)
    lane = pool.open(node)
    assert pool.get(lane, "warm") == [value("warm")]
    fake.behave("deaf")
    big = encode("SET", "k", "x" * 300_000)
    gather = pool.gather.Gather()
    most, error = 0, None
    while error is None:
        error = lane.wait_for_room(READ) if full(lane) else lane.submit(big, READ, gather, gather.expect())
        most = max(most, lane.pending_bytes)
        turn()
    assert most < (1 << 20) + len(big)
    assert fault(error).kind == "busy"
    wait(gather)
    assert {fault(reply).kind for reply in gather.slots} <= {"timeout", "backoff", "queue"}
    assert lane.pending_bytes == 0
    assert not full(lane)
    fake.behave("good")
    until(lambda: not node.is_backing_off, "the back-off ends")
    assert pool.get(lane, "a") == [value("a")]


def test_those_who_wait_for_room_are_woken_by_the_loss_of_the_connection(pool: Pool, fake: FakeServer) -> None:
    node = node_for(Server("127.0.0.1", fake.port), pool, Timeout(200, 100, 60_000), max_pending_bytes=1 << 20)
    lane = pool.open(node)
    assert pool.get(lane, "warm") == [value("warm")]
    fake.behave("deaf")
    gather = pool.post(lane, encode("SET", "k", "x" * 20_000_000))
    until(lambda: full(lane), "it is full")
    with gevent.Timeout(5):
        assert lane.wait_for_room(READ) is None
    wait(gather)
    assert fault(gather.slots[0]).kind == "timeout"


def test_a_server_that_reads_slowly_is_not_silent(pool: Pool) -> None:
    """A large request takes longer than the read deadline; what waits behind it is given up at the queue deadline."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        node = node_for(Server("127.0.0.1", listener.getsockname()[1]), pool, Timeout(2000, 100, 150))
        lane = pool.open(node)
        size = 7_000_000
        gather = pool.post(lane, encode("SET", "k", "x" * size))
        turn()
        accepted = gevent.get_hub().threadpool.apply(listener.accept)
        with accepted[0] as sock:
            threads = gevent.get_hub().threadpool
            assert b"PING" in threads.apply(sock.recv, (65536,))
            sock.sendall(b"+PONG\r\n")
            nonce = threads.apply(sock.recv, (65536,)).split(b"\r\n")[-2]
            sock.sendall(b"$%d\r\n%b\r\n" % (len(nonce), nonce))
            seen = 0
            late = None
            while seen < size:
                seen += len(threads.apply(sock.recv, (300_000,)))
                late = late or (pool.post(lane, encode("GET", "late")) if lane.in_flight else None)
                turn(0.02)
            sock.sendall(b"+OK\r\n")
            wait(gather)
        assert gather.slots == [b"+OK\r\n"]
        assert late is not None
        wait(late)
        assert fault(late.slots[0]).kind == "queue"


def test_a_server_that_answers_byte_by_byte_is_not_waited_for(pool: Pool, fake: FakeServer) -> None:
    """It is never silent for as long as the read deadline, and its whole answer would take several times as long."""
    node = node_for(Server("127.0.0.1", fake.port, name="a"), pool, Timeout(600, 600, 600))
    lane = pool.open(node)
    assert pool.get(lane, "warm") == [value("warm")]

    def trickle(talk: Conversation, reply: bytes) -> None:
        for byte in reply:
            talk.stop.wait(0.15)
            talk.send(bytes([byte]))

    fake.behaviour = trickle
    began = monotonic()
    first, second = pool.get(lane, "a", "b")
    assert monotonic() - began < 2
    assert "its answer comes too slowly: " in str(fault(first))
    assert fault(first).kind == fault(second).kind == "timeout"
    fake.behave("good")
    until(lambda: not node.is_backing_off, "the back-off ends")
    assert pool.get(lane, "c") == [value("c")]


def test_a_large_answer_over_a_slow_line_has_the_time_it_needs(pool: Pool, fake: FakeServer) -> None:
    node = node_for(Server("127.0.0.1", fake.port, name="a"), pool, Timeout(600, 600, 600))
    lane = pool.open(node)
    assert pool.get(lane, "warm") == [value("warm")]
    large = b"$100000\r\n%b\r\n" % (b"x" * 100_000)

    def steady(talk: Conversation, reply: bytes) -> None:
        for start in range(0, len(large), 5000):
            talk.stop.wait(0.1)
            talk.send(large[start : start + 5000])

    fake.behaviour = steady
    began = monotonic()
    assert pool.get(lane, "a") == [large]
    assert monotonic() - began > 3 * node.read_s


def test_a_busy_worker_does_not_take_its_own_silence_for_the_servers(pool: Pool, node: Node) -> None:
    lane = pool.open(node)
    assert pool.get(lane, "warm") == [value("warm")]
    gather = pool.post(lane, encode("GET", "a"))
    turn()
    assert lane.in_flight
    end = monotonic() + 0.4
    while monotonic() < end:  # the loop stands still longer than the read deadline
        pass
    wait(gather)
    assert gather.slots == [value("a")]
