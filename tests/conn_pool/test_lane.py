"""A lane before servers that work, misbehave, vanish and return: right replies to the right questions, or an error."""

from __future__ import annotations

import socket
from contextlib import suppress
from time import monotonic
from typing import Any

import gevent
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Backoff, Server, Timeout
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import Pool, node_for, turn, until, value, wait
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.fakes.server import Conversation

KEYS = [f"key{number}" for number in range(50)]


def fault(reply: object) -> BackendError:
    """The error that came instead of a reply."""
    assert isinstance(reply, BackendError), reply
    return reply


def full(lane: Any) -> bool:
    """Must whoever wants to send wait?"""
    return bool(lane.pending_bytes > lane.max_pending_bytes)


@pytest.mark.parametrize("behaviour", ["good", "slow", "bytewise"])
def test_replies_match_their_requests(pool: Pool, node: Node, fake: FakeServer, behaviour: str) -> None:
    fake.behave(behaviour)
    lane = pool.open(node)
    keys = KEYS[:1] if behaviour == "slow" else KEYS
    assert pool.get(lane, *keys) == [value(key) for key in keys]
    assert fake.accepted == 1
    assert (lane.sent, lane.answered, lane.in_flight, lane.pending_bytes) == (len(keys), len(keys), 0, 0)


def test_many_callers_share_one_connection(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node)
    jobs = [gevent.spawn(pool.get, lane, key) for key in KEYS for _ in range(10)]
    gevent.joinall(jobs, timeout=10, raise_error=True)
    assert [job.value for job in jobs] == [[value(key)] for key in KEYS for _ in range(10)]
    assert fake.accepted == 1


def test_a_new_connection_is_tried_with_one_request(pool: Pool, node: Node, fake: FakeServer) -> None:
    fake.behave("silent")
    lane = pool.open(node)
    gather = pool.post(lane, *(encode("GET", key) for key in KEYS))
    until(lambda: lane.in_flight, "the request leaves")
    turn()
    assert (lane.in_flight, lane.queued) == (1, len(KEYS) - 1)
    wait(gather)
    assert {fault(reply).kind for reply in gather.slots} <= {"timeout", "backoff"}


@pytest.mark.parametrize(
    ("behaviour", "kind", "says"),
    [
        ("silent", "timeout", "no answer within 200 ms"),
        ("half", "timeout", "no answer within 200 ms"),
        ("reset", "reset", "connection lost"),
        ("hangs_up", "reset", "it closed the connection"),
        ("garbage", "protocol", "its answer can't be understood"),
        ("endless", "protocol", "its answer can't be understood"),
        ("too_much", "protocol", "it sent more answers than it was asked for"),
        ("double", "protocol", "it sent more answers than it was asked for"),
    ],
)
def test_a_misbehaving_server_is_an_error_with_its_name(
    pool: Pool, node: Node, fake: FakeServer, behaviour: str, kind: str, says: str
) -> None:
    fake.behave(behaviour)
    lane = pool.open(node)
    first, *others = pool.get(lane, *KEYS)
    assert fault(first).kind == kind
    assert str(first).startswith(f"instance 'user' node 'a (127.0.0.1:{fake.port})': {says}")
    assert {fault(reply).kind for reply in others} == {"backoff"}
    assert not lane.is_open
    assert (lane.in_flight, lane.queued, lane.pending_bytes) == (0, 0, 0)
    fake.behave("good")
    until(lambda: not node.is_backing_off, "the back-off ends")
    assert pool.get(lane, *KEYS) == [value(key) for key in KEYS]


@pytest.mark.parametrize("behaviour", ["garbage", "reset", "half", "hangs_up", "silent", "endless"])
def test_replies_before_the_fault_are_good_and_those_after_it_errors(
    pool: Pool, node: Node, fake: FakeServer, behaviour: str
) -> None:
    lane = pool.open(node)
    assert pool.get(lane, "warm") == [value("warm")]
    fake.behave(behaviour)
    for reply in pool.get(lane, *KEYS):
        fault(reply)


def test_surplus_after_the_answer_costs_the_connection_and_nothing_else(
    pool: Pool, node: Node, fake: FakeServer
) -> None:
    fake.behave("afterthought")
    lane = pool.open(node)
    assert pool.get(lane, "a") == [value("a")]
    until(lambda: not lane.is_open, "the surplus is noticed")
    fake.behave("good")
    until(lambda: not node.is_backing_off, "the back-off ends")
    assert pool.get(lane, *KEYS) == [value(key) for key in KEYS]


def test_a_connection_closed_while_idle_is_no_failure(pool: Pool, node: Node, fake: FakeServer) -> None:
    fake.behave("closes")
    lane = pool.open(node)
    for key in KEYS[:10]:
        assert pool.get(lane, key) == [value(key)]
        until(lambda: not lane.is_open, "the end is noticed")
        assert not node.is_backing_off
    assert fake.accepted == 10
    assert not node.errors


def test_what_was_not_sent_survives_the_loss_of_a_connection(pool: Pool, node: Node, fake: FakeServer) -> None:
    """Requests that wait while an idle connection ends leave on the next one."""
    lane = pool.open(node)
    assert pool.get(lane, "a") == [value("a")]
    fake.behave("closes")
    assert pool.get(lane, "b") == [value("b")]
    fake.behave("good")
    (reply,) = pool.get(lane, "c")
    assert reply == value("c") or fault(reply).kind == "reset"


def test_a_dead_server_fails_at_once_and_is_left_alone_for_the_back_off(pool: Pool, fake: FakeServer) -> None:
    node = node_for(Server("127.0.0.1", fake.port), pool, backoff=Backoff(400, 400))
    fake.stop()
    lane = pool.open(node)
    refused = fault(pool.get(lane, "a")[0])
    kinds = [fault(reply).kind for key in KEYS for reply in pool.get(lane, key)]
    assert (refused.kind, kinds) == ("refused", ["backoff"] * len(KEYS))
    assert node.errors["refused"] == 1
    with FakeServer(REDIS, port=fake.port) as successor:
        later = fault(pool.get(lane, "a")[0])
        assert (later.kind, str(later)) == ("backoff", f"{refused}; not tried again yet"), "the same text each time"
        until(lambda: not node.is_backing_off, "the back-off ends")
        assert pool.get(lane, *KEYS) == [value(key) for key in KEYS]
        assert successor.accepted == 1


def test_pauses_grow_and_end_with_the_first_success(pool: Pool, node: Node, fake: FakeServer) -> None:
    fake.stop()
    lane = pool.open(node)
    for failures in (1, 2, 3, 4):
        until(lambda: not node.is_backing_off, "the back-off ends")
        assert fault(pool.get(lane, "a")[0]).kind == "refused"
        assert node.pause.failures == failures
    with FakeServer(REDIS, port=fake.port):
        until(lambda: not node.is_backing_off, "the back-off ends")
        assert pool.get(lane, "a") == [value("a")]
        assert node.pause.failures == 0


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


def test_a_private_lane_connects_once(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node, private=True)
    assert pool.get(lane, "a") == [value("a")]
    fake.behave("hangs_up")
    assert fault(pool.get(lane, "a")[0]).kind == "reset"
    fake.behave("good")
    until(lambda: not node.is_backing_off, "the back-off ends")
    assert fault(pool.get(lane, "a")[0]).kind == "reset"
    assert lane.dead is not None
    assert lane not in node.lanes
    assert fake.accepted == 1


def test_an_abandoned_lane_fails_what_is_in_flight(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node, private=True)
    lane.be_patient(True)
    fake.behave("silent")
    gather = pool.post(lane, encode("BLPOP", "a", 0))
    until(lambda: lane.in_flight, "the request leaves")
    lane.abandon()
    wait(gather)
    assert fault(gather.slots[0]).kind == "closed"


def test_an_abandoned_lane_that_still_connects_fails_too(pool: Pool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        node = node_for(Server("127.0.0.1", listener.getsockname()[1]), pool)
        lane = pool.open(node, private=True)
        gather = pool.post(lane, encode("GET", "a"))
        lane.abandon()
        wait(gather)
        assert fault(gather.slots[0]).kind == "closed"


def test_a_patient_lane_waits_longer_than_the_read_deadline(pool: Pool, fake: FakeServer) -> None:
    node = node_for(Server("127.0.0.1", fake.port), pool, Timeout(500, 80, 200))  # the greeting has no more, either
    lane = pool.open(node, private=True)
    lane.be_patient(True)
    fake.behave("slow")
    assert pool.get(lane, "a") == [value("a")]
    lane.be_patient(False)
    fake.behave("silent")
    assert fault(pool.get(lane, "a")[0]).kind == "timeout"


def test_a_removed_node_answers_what_is_in_flight_first(pool: Pool, node: Node, fake: FakeServer) -> None:
    lane = pool.open(node)
    fake.behave("slow")
    gather = pool.post(lane, *(encode("GET", key) for key in KEYS[:2]))
    node.close()
    wait(gather)
    assert gather.slots == [value(key) for key in KEYS[:2]]
    until(lambda: not lane.is_open, "it is closed")


def test_an_answer_that_does_not_fit_closes_only_the_connection_it_came_on(
    pool: Pool, node: Node, fake: FakeServer
) -> None:
    lane = pool.open(node)
    pool.get(lane, "a")
    for _ in range(3):
        assert lane.distrust("its answer does not fit").kind == "protocol"
    until(lambda: not lane.is_open, "it is closed")
    until(lambda: not node.is_backing_off, "the back-off ends")
    assert pool.get(lane, "a") == [value("a")]
    turn()
    assert lane.is_open
    assert fake.accepted == 2


def test_replies_nobody_wants_are_read_and_dropped(pool: Pool, node: Node) -> None:
    lane = pool.open(node)
    lane.submit(encode("GET", "a"), READ, None, -1)
    assert pool.get(lane, "b") == [value("b")]
    lane.submit(bytearray(encode("GET", "c")), READ, None, -1)
    assert pool.get(lane, "d") == [value("d")]


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
