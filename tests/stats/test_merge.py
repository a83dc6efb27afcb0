"""Merging: sums do not depend on the order, and percentiles come from merged cells only."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.stats.histogram import Histogram
from hyper_proxy.stats.merge import histogram, known, merge, retire


def times(*all_us: int) -> dict[str, Any]:
    one = Histogram()
    for us in all_us:
        one.add(us)
    return one.snapshot()


def snapshot(requests: int, clients: int, *all_us: int) -> dict[str, Any]:
    node = {"requests": requests, "in_flight": 1, "errors": {"reset": 1}, "latency_us": times(*all_us)}
    instance = {"clients": clients, "requests": {"read": requests}, "latency_us": {"read": times(*all_us)}}
    return {"worker": {"connections": clients}, "instances": {"user": instance | {"nodes": {"a": node}}}}


def test_snapshots_add_up() -> None:
    merged = merge([snapshot(3, 1, 10, 20), {}, snapshot(4, 2, 30)])
    user = merged["instances"]["user"]
    assert merged["worker"] == {"connections": 3}
    assert (user["requests"], user["clients"]) == ({"read": 7}, 3)
    assert user["nodes"]["a"]["errors"] == {"reset": 2}
    assert user["latency_us"]["read"]["cells"] == [[10, 1], [20, 1], [30, 1]]


def test_merging_leaves_its_parts_alone() -> None:
    part = snapshot(3, 1, 10)
    merge([part, part])
    assert part == snapshot(3, 1, 10)


def test_a_sum_can_be_added_to() -> None:
    one, two, three = snapshot(3, 1, 10, 20), snapshot(4, 2, 30), snapshot(5, 5, 70_000)
    assert merge([merge([one, two]), three]) == merge([one, merge([three, two])]) == merge([one, two, three])


def test_an_instance_may_be_named_like_a_part_of_a_histogram() -> None:
    odd = {"instances": {"cells": {"clients": 1}}}
    assert merge([odd, odd])["instances"] == {"cells": {"clients": 2}}


def test_an_ended_worker_leaves_counters_and_its_gauges_are_zero() -> None:
    left = retire(snapshot(3, 1, 10))
    user = left["instances"]["user"]
    assert left["worker"] == {}
    assert (user["clients"], user["requests"]) == (0, {"read": 3})
    assert (user["nodes"]["a"]["in_flight"], user["nodes"]["a"]["requests"]) == (0, 3)
    assert merge([left, snapshot(4, 2, 30)])["instances"]["user"]["clients"] == 2


def test_what_none_of_the_living_has_is_not_known() -> None:
    counted = merge([snapshot(3, 1, 10), {"instances": {"gone": {"nodes": {}}}}])
    counted["instances"]["user"]["nodes"]["b"] = counted["instances"]["user"]["nodes"]["a"]
    assert known(counted, []) == counted
    instances = known(counted, [snapshot(4, 2, 30)])["instances"]
    assert {name: [*row["nodes"]] for name, row in instances.items()} == {"user": ["a"]}


def test_percentiles_are_those_of_all_events_together() -> None:
    fast, slow = times(*[10] * 98), times(1000, 90_000_000)
    merged = histogram([fast, slow])
    assert (merged["count"], merged["p50"], merged["p90"]) == (100, 10, 10)
    assert 1000 <= merged["p99"] <= 1063
    assert 90_000_000 <= merged["max"] <= 90_000_000 * 17 / 16


def test_nothing_has_percentiles_of_zero() -> None:
    assert histogram([])["p99"] == 0


@given(st.lists(st.lists(st.integers(0, 200_000_000), max_size=5), max_size=4))
def test_the_parts_of_a_histogram_do_not_matter(parts: list[list[int]]) -> None:
    together = histogram([times(*(us for part in parts for us in part))])
    assert histogram([times(*part) for part in parts]) == together
    assert histogram([times(*part) for part in reversed(parts)]) == together


def test_lists_of_keys_and_slow_requests_are_merged() -> None:
    def part(hot: list[list[Any]], big: list[list[Any]], *at: float) -> dict[str, Any]:
        instance = {"hot_keys": hot, "big_keys": big}
        return {"instances": {"user": instance}, "slowlog": [{"at": moment} for moment in at]}

    parts = [part([["a", 5], ["b", 3]], [["a", 10]], 1.0, 4.0), part([["b", 4]], [["a", 7], ["c", 8]], 2.0)]
    merged = merge(parts)
    assert merged["instances"]["user"] == {"hot_keys": [["b", 7], ["a", 5]], "big_keys": [["a", 10], ["c", 8]]}
    assert merged["slowlog"] == [{"at": 1.0}, {"at": 2.0}, {"at": 4.0}]
    many = part([[str(key), key] for key in range(100)], [], *range(200))
    assert merge([*parts, many])["slowlog"] == [{"at": float(moment)} for moment in range(72, 200)]
    assert len(merge([*parts, many])["instances"]["user"]["hot_keys"]) == 32
    assert "slowlog" not in retire(merged)
    assert retire(merged)["instances"]["user"] == {"nodes": {}}
