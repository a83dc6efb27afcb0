"""A lane before servers that work, misbehave, vanish and return: right replies to the right questions, or an error."""

from __future__ import annotations

import socket

import gevent
import pytest

from hyper_proxy.config.model import Backoff, Server, Timeout
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import KEYS, Pool, fault, node_for, turn, until, value, wait
from tests.kit.fakes import REDIS, FakeServer


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
