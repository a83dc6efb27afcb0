"""What happened between two readings of /stats, as plain data: rates, percentiles, and the gauges of the second one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.cli.ctl_show import node_states
from hyper_proxy.stats.merge import percentile
from hyper_proxy.stats.state import EXPECTED, word_of

SCHEMA = 1
HISTORY = 120
"""Points that are kept for the curves: two minutes of one each second."""

Report = dict[str, Any]
Figures = dict[str, Any]
Cells = dict[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """One document of GET /stats; `at` is CLOCK_MONOTONIC seconds, `wall` seconds since 1970."""

    at: float
    wall: float
    report: Report

    def goes_on(self, before: Reading) -> bool:
        """Is it the same fleet still? Counters of another one begin anew."""
        return bool(self.report["fleet"] == before.report["fleet"]) and self.at > before.at


def figures(before: Reading, after: Reading) -> Figures:
    """Everything that `top` shows. Of what was not there before, the rates are None: nobody knows since when."""
    seconds = after.at - before.at
    old, new = before.report, after.report
    instances = [_instance(name, old, row, seconds) for name, row in new["instances"].items()]
    states = node_states(new)
    nodes = [
        _node(name, label, states[name, label], old, row, seconds)
        for name, instance in new["instances"].items()
        for label, row in instance.get("nodes", {}).items()
    ]
    return {
        "schema": SCHEMA,
        "at": after.wall,
        "seconds": seconds,
        "state": _state(old, new, instances, nodes),
        "fleet": new["fleet"],
        "master": new["master"],
        "config": new["config"],
        "totals": _totals(old, new, seconds),
        "workers": [_worker(row, old, seconds) for row in (*new["workers"], *new.get("leaving", []))],
        "instances": instances,
        "nodes": nodes,
    }


def _state(old: Report, new: Report, instances: list[Figures], nodes: list[Figures]) -> str:
    """The word of the sidecar's page, for these seconds: a server that is down hurts unless its instance answers
    without it."""
    troubled = {name for name, row in new["instances"].items() if _has_failed(old["instances"].get(name, {}), row)}
    sound = {row["instance"] for row in instances if row["requests"]} - troubled
    down = {row["instance"] for row in nodes if row["state"] == "down"}
    whole = all(row["state"] == "ready" for row in new["workers"])
    return word_of(new["master"]["state"], whole, bool(troubled or down - sound), bool(down))


def _has_failed(before: Report, row: Report) -> bool:
    then = before.get("errors", {})
    return any(kind not in EXPECTED and count > then.get(kind, 0) for kind, count in row.get("errors", {}).items())


class History:
    """The newest points of requests a second and of the 99th percentile; None where there is none."""

    def __init__(self) -> None:
        self.requests_per_s: deque[float | None] = deque(maxlen=HISTORY)
        self.p99_us: deque[float | None] = deque(maxlen=HISTORY)

    def add(self, shown: Figures | None) -> None:
        """One point more; of nothing when the fleet did not answer."""
        totals = shown["totals"] if shown else {}
        self.requests_per_s.append(totals.get("requests_per_s"))
        self.p99_us.append(totals.get("p99_us"))


def _totals(old: Report, new: Report, seconds: float) -> Figures:
    rows = list(new["instances"].values())
    befores = [old["instances"].get(name) for name in new["instances"]]
    known = [(before, row) for before, row in zip(befores, rows, strict=True) if before is not None]
    total = {
        "clients": sum(row.get("clients", 0) for row in rows),
        "in_flight": sum(row.get("in_flight", 0) for row in rows),
    }
    work = _work(
        sum(_grown(before, row, "requests") for before, row in known),
        sum(_grown(before, row, "errors") for before, row in known),
        _added(_histograms(before) for before, _ in known),
        _added(_histograms(row) for _, row in known),
        seconds,
    )
    return total | work


def _instance(name: str, old: Report, row: Report, seconds: float) -> Figures:
    before = old["instances"].get(name)
    nodes = row.get("nodes", {}).values()
    return {
        "instance": name,
        "clients": row.get("clients", 0),
        "in_flight": row.get("in_flight", 0),
        "queued": sum(node.get("queued", 0) for node in nodes),
        "nodes": len(nodes),
    } | _changes(before, row, seconds)


def _node(name: str, label: str, state: str, old: Report, row: Report, seconds: float) -> Figures:
    before = old["instances"].get(name, {}).get("nodes", {}).get(label)
    gauges = {key: row.get(key, 0) for key in ("connections", "in_flight", "queued")}
    return {"instance": name, "node": label, "state": state} | gauges | _changes(before, row, seconds)


def _worker(row: Report, old: Report, seconds: float) -> Figures:
    others: list[Report] = [*old["workers"], *old.get("leaving", [])]
    before: Report = next((one for one in others if one["pid"] == row["pid"] != 0), {})
    gauges = ("slot", "pid", "generation", "state", "uptime_s", "restarts", "last_exit", "loop_lag_s")
    counted = {name: row.get(name) for name in ("connections", "in_flight", "rss_bytes")}
    cpu = _per_second(before.get("cpu_s"), row.get("cpu_s"), seconds)
    return {name: row[name] for name in gauges} | counted | {
        "pid": row["pid"] or None,  # a slot in quarantine has none
        "requests_per_s": _per_second(before.get("requests"), row.get("requests"), seconds),
        "cpu_percent": None if cpu is None else cpu * 100,
    }  # fmt: skip


def _changes(before: Report | None, row: Report, seconds: float) -> Figures:
    if before is None:
        names = ("requests", "requests_per_s", "errors_per_s", "p50_us", "p99_us", "bytes_in_per_s", "bytes_out_per_s")
        return dict.fromkeys(names)
    work = _work(
        _grown(before, row, "requests"), _grown(before, row, "errors"), _histograms(before), _histograms(row), seconds
    )
    return work | {
        f"{name}_per_s": _per_second(before.get(name), row.get(name), seconds) for name in ("bytes_in", "bytes_out")
    }


def _work(requests: int, errors: int, old_cells: Cells, new_cells: Cells, seconds: float) -> Figures:
    grown = sorted((cell, count - old_cells.get(cell, 0)) for cell, count in new_cells.items())
    cells = [(cell, count) for cell, count in grown if count > 0]
    answered = sum(count for _, count in cells)
    return {
        "requests": requests,
        "requests_per_s": requests / seconds,
        "errors_per_s": errors / seconds,
        "p50_us": percentile(cells, answered, 0.5) if cells else None,
        "p99_us": percentile(cells, answered, 0.99) if cells else None,
    }


def _grown(before: Report, row: Report, name: str) -> int:
    """How much a counter has grown, be it one number or split; not less than 0: a killed worker may take a second of
    counting along."""
    return max(0, _count(row.get(name, 0)) - _count(before.get(name, 0)))


def _count(value: Any) -> int:
    return sum(value.values()) if isinstance(value, dict) else value


def _per_second(before: float | None, after: float | None, seconds: float) -> float | None:
    return None if before is None or after is None else max(0.0, after - before) / seconds


def _histograms(row: Report) -> Cells:
    """The cells of a node's histogram, or of an instance's, which has one for each class."""
    latency = row.get("latency_us", {})
    return _added([dict(latency["cells"])] if "cells" in latency else [dict(one["cells"]) for one in latency.values()])


def _added(parts: Iterable[Cells]) -> Cells:
    total: Cells = {}
    for part in parts:
        for cell, count in part.items():
            total[cell] = total.get(cell, 0) + count
    return total
