"""Those who wait on one lane: what happens to one of them is not the others'."""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import Pool, until, value
from tests.kit.fakes import FakeServer


def kind(replies: list[bytes | BackendError]) -> str:
    """Of the one error among the replies."""
    (reply,) = replies
    assert isinstance(reply, BackendError), reply
    return reply.kind


def test_a_fault_of_one_who_waits_is_not_the_others(pool: Pool, node: Node, fake: FakeServer) -> None:
    class Faulty(pool.gather.Gather):  # type: ignore[name-defined]
        def fail(self, position: int, error: object) -> None:
            raise ValueError("a fault")

    fake.behave("silent")
    lane = pool.open(node)
    for _ in range(2):  # the first is sent, the second one waits behind it
        lane.submit(encode("GET", "a"), READ, Faulty(), 0)
    assert kind(pool.get(lane, "b")) == "backoff"
    until(lambda: not node.is_backing_off, "the back-off ends")
    fake.behave("good")
    assert pool.get(lane, "b") == [value("b")]
    fake.behave("silent")
    lane.submit(encode("GET", "a"), READ, Faulty(), 0)
    assert kind(pool.get(lane, "b")) == "timeout"  # both were sent
