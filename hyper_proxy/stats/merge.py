"""Statistics of many workers become those of the fleet: by addition, cell by cell.

A snapshot is what a worker's engine reports, and what `merge` returns, so that sums can be added to again:

    {"worker": {name: n}, "instances": {NAME: INSTANCE}, "slowlog": [RECORD, ...], "events": [EVENT, ...]}
    INSTANCE = {name: n, "requests": {class: n}, "errors": {kind: n}, "latency_us": {class: HISTOGRAM},
                "hot_keys": [[key, count], ...], "big_keys": [[key, bytes], ...],
                "nodes": {LABEL: {name: n, "errors": {kind: n}, "latency_us": HISTOGRAM}}}

    RECORD is that of a slow request, with its time as "at" (hyper_proxy.stats.slowlog): the newest are kept, in order
    EVENT is what the log says of a server, {"at": s, "level": "", "event": "", "fields": {name: text}}: the same
    HISTOGRAM = {"sum_us": n, "cells": [[cell, count], ...]}, to which merge adds "count" and percentiles
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from hyper_proxy.stats.histogram import highest_us
from hyper_proxy.stats.hotkeys import SHOWN
from hyper_proxy.stats.slowlog import KEPT
from hyper_proxy.stats.table import COUNTER, HISTOGRAM, INSTANCE, NODE, of

Snapshot = dict[str, Any]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


def merge(snapshots: Iterable[Snapshot]) -> Snapshot:
    """The sum of all; an empty snapshot adds nothing."""
    return {"worker": {}, "instances": {}} | _sum([snapshot for snapshot in snapshots if snapshot])


def retire(snapshot: Snapshot) -> Snapshot:
    """What stays of a worker that has ended: its counters and histograms; its gauges are 0."""
    instances = {}
    for name, instance in snapshot.get("instances", {}).items():
        nodes = {label: _lasting(node, NODE) for label, node in instance.get("nodes", {}).items()}
        instances[name] = _lasting(instance, INSTANCE) | {"nodes": nodes}
    return {"worker": {}, "instances": instances}


def known(counted: Snapshot, living: Iterable[Snapshot]) -> Snapshot:
    """`counted` without the instances and nodes that none of the living has, if there is one: a reload took them
    away."""
    nodes: dict[str, set[str]] = {}
    for snapshot in living:
        for name, instance in snapshot.get("instances", {}).items():
            nodes.setdefault(name, set()).update(instance.get("nodes", {}))
    if not nodes:
        return counted
    instances = {
        name: row | {"nodes": {label: node for label, node in row["nodes"].items() if label in nodes[name]}}
        for name, row in counted.get("instances", {}).items()
        if name in nodes
    }
    return counted | {"instances": instances}


def imbalance(workers: Iterable[dict[str, Any]]) -> float:
    """Connections of the busiest worker, divided by the average: 1.0 is even.

    The system spreads them by a hash: a little above 1.0 is chance, and with few connections any number is.
    """
    counts = [worker["connections"] for worker in workers if "connections" in worker]
    return round(max(counts) * len(counts) / sum(counts), 2) if any(counts) else 1.0


def histogram(parts: Iterable[Snapshot]) -> Snapshot:
    """The sum of histograms, with the number of events and the percentiles in microseconds; those of none are 0."""
    cells: dict[int, int] = {}
    sum_us = 0
    for part in parts:
        sum_us += part["sum_us"]
        for cell, count in part["cells"]:
            cells[cell] = cells.get(cell, 0) + count
    ordered = sorted(cells.items())
    count = sum(cells.values())
    percentiles = {name: percentile(ordered, count, share) for name, share in PERCENTILES.items()}
    return {"count": count, "sum_us": sum_us, **percentiles, "cells": [list(pair) for pair in ordered]}


def percentile(cells: list[tuple[int, int]], count: int, share: float) -> int:
    """The time, in microseconds, that `share` of all `count` events did not exceed; `cells` in ascending order."""
    seen = 0
    for cell, events in cells:
        seen += events
        if seen >= share * count:
            return highest_us(cell)
    return 0


def _sum(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Key by key, of all parts at once: percentiles are dear, and are taken of the whole only."""
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: _total(key, [part[key] for part in parts if key in part]) for key in keys}


def _total(key: str, values: list[Any]) -> Any:
    if isinstance(values[0], list):
        return LISTS[key]([entry for value in values for entry in value])
    if not isinstance(values[0], dict):
        return max(values) if key in HIGHEST else sum(values)
    if isinstance(values[0].get("cells"), list):  # a list: an instance may be named "cells", too
        return histogram(values)
    return _sum(values)


def _newest(records: list[Any]) -> list[Any]:
    return sorted(records, key=lambda record: record["at"])[-KEPT:]


def _by_key(pairs: list[Any], join: Callable[[int, int], int]) -> list[Any]:
    joined: dict[str, int] = {}
    for key, number in pairs:
        joined[key] = join(joined[key], number) if key in joined else number
    ordered = sorted(joined.items(), key=lambda pair: pair[1], reverse=True)
    return [list(pair) for pair in ordered[:SHOWN]]


HIGHEST = frozenset({"lag_s"})
"""What is not added up: the highest value counts."""

LISTS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "slowlog": _newest,
    "events": _newest,
    "hot_keys": lambda pairs: _by_key(pairs, operator.add),
    "big_keys": lambda pairs: _by_key(pairs, max),
}
"""How the lists of several snapshots, one behind the other, become one."""


def _lasting(record: dict[str, Any], where: str) -> dict[str, Any]:
    kinds = {row.name: row.kind for row in of(where)}
    return {
        name: value if kinds[name] in (COUNTER, HISTOGRAM) else _zero(value)
        for name, value in record.items()
        if name in kinds
    }


def _zero(gauge: Any) -> Any:
    return dict.fromkeys(gauge, 0) if isinstance(gauge, dict) else 0
