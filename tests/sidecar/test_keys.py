"""Slow requests and notable keys of many workers become one list."""

from __future__ import annotations

from typing import Any

from supervisor.sidecar.keys import big_keys, hot_keys, slow_requests, worst_phase
from supervisor.sidecar.plots import phases


def answer(*workers: dict[str, Any]) -> dict[str, Any]:
    return {"snapshots": [{"slot": slot, "pid": slot, "data": data} for slot, data in enumerate(workers)]}


def test_slow_requests_of_all_workers_newest_first() -> None:
    workers = answer({"slowlog": [{"at": 1.0}, {"at": 4.0}]}, {"slowlog": [{"at": 3.0}]}, {})
    assert [entry["at"] for entry in slow_requests(workers)] == [4.0, 3.0, 1.0]
    assert [entry["at"] for entry in slow_requests(workers, 2)] == [4.0, 3.0]


def test_counts_of_a_key_add_up_and_of_sizes_the_largest_counts() -> None:
    one = {"instances": {"shop": {"hot_keys": [["a", 5], ["b", 4]], "big_keys": [["a", 10]]}}}
    two = {"instances": {"shop": {"hot_keys": [["b", 3]], "big_keys": [["a", 30], ["c", 20]]}, "other": {}}}
    assert hot_keys(answer(one, two)) == {"shop": [["b", 7], ["a", 5]], "other": []}
    assert big_keys(answer(one, two)) == {"shop": [["a", 30], ["c", 20]], "other": []}
    assert hot_keys(answer(one, two), 1)["shop"] == [["b", 7]]


def test_the_bar_of_phases_is_as_long_as_its_parts_and_says_them() -> None:
    entry = {"parse_us": 10, "queue_us": 0, "storage_us": 90}
    assert worst_phase(entry) == "storage"
    bar = phases(entry)
    assert "parse 10 µs, storage 90 µs" in bar
    assert 'x="16.0" width="144.0"' in bar
    assert "svg" in phases({}), "an entry without phases has a bar, too"
