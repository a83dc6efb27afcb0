"""Lanes that send at the end of the same turn of the event loop."""

from __future__ import annotations

from hyper_proxy.conn_pool.node import Node
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.redis import encode
from tests.conn_pool.conftest import Pool, turn, value, wait


def test_a_fault_of_one_lane_keeps_no_other_from_sending(pool: Pool, node: Node) -> None:
    broken, lane = pool.open(node), pool.open(node)
    for each in (broken, lane):
        assert pool.get(each, "warm") == [value("warm")]
    turn()  # out of the reply of the last one, behind which its lane sends by itself
    broken.submit("no bytes", READ, None, 0)
    gather = pool.post(lane, encode("GET", "a"))
    assert lane.queued
    turn()
    turn()  # what is behind a fault is sent in the next one
    assert not lane.queued
    wait(gather)
    assert gather.slots == [value("a")]
