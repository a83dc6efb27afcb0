"""The counters at one moment, by whom they belong to, small enough to be kept often; and what was between two of them.

Histograms are subtracted cell by cell, and percentiles are taken of the difference; they are never averaged.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hyper_proxy.stats.merge import percentile
from hyper_proxy.stats.state import CLIENTS_OWN
from hyper_proxy.stats.table import COUNTER, WORKER, of

Owner = tuple[str, ...]
"""("fleet",), ("instance", NAME), ("node", INSTANCE, LABEL) or ("worker", PID)."""
FLEET: Owner = ("fleet",)

WORKER_COUNTERS = tuple(row.name for row in of(WORKER) if row.kind == COUNTER)


@dataclass(slots=True)
class Tally:
    """What one owner has counted so far. `others` are a worker's own counters; `cells` are pairs of cell and count, one
    after the other."""

    requests: int = 0
    refused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    cpu_s: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    cells: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True, slots=True)
class Sample:
    """All tallies at one moment, in seconds since 1970."""

    at: float
    tallies: dict[Owner, Tally]


@dataclass(frozen=True, slots=True)
class Pace:
    """What one owner did between two samples: rates a second, percentiles in microseconds (0: there was nothing).

    `errors` is by kind, `trouble` the sum of those that are no client's own fault; `grown` is by how much which of a
    worker's own counters has grown.
    """

    seconds: float = 0.0
    requests: float = 0.0
    refused: float = 0.0
    errors: dict[str, float] = field(default_factory=dict)
    trouble: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    cpu: float = 0.0
    grown: dict[str, int] = field(default_factory=dict)
    p50_us: int = 0
    p99_us: int = 0


def take(at: float, report: dict[str, Any], snapshots: list[dict[str, Any]]) -> Sample:
    """`report`: the document of /stats; `snapshots`: those of the single workers, from the master's answer."""
    tallies: dict[Owner, Tally] = {FLEET: Tally()}  # the first: it is always plotted
    for name, instance in report["instances"].items():
        tallies["instance", name] = _of_instance(instance)
        for label, node in instance.get("nodes", {}).items():
            tallies["node", name, label] = _tally(node, node.get("requests", 0), [node.get("latency_us")])
    tallies[FLEET] = _sum(tally for owner, tally in tallies.items() if owner[0] == "instance")
    for row in snapshots:
        tally = _sum(_of_instance(instance) for instance in row["data"].get("instances", {}).values())
        worker = row["data"].get("worker", {})
        tally.cpu_s = worker.get("cpu_s", 0.0)
        tally.others = {name: worker[name] for name in WORKER_COUNTERS if name in worker}
        tallies["worker", str(row["pid"])] = tally
    return Sample(at, tallies)


def between(old: Sample, new: Sample, owner: Owner) -> Pace:
    """What an owner did from the one to the other. One that was not there before, or that has begun anew, did nothing
    before."""
    seconds = new.at - old.at
    now, before = new.tallies.get(owner), old.tallies.get(owner, Tally())
    if now is None or seconds <= 0:
        return Pace()
    if now.requests < before.requests or now.bytes_in < before.bytes_in:
        before = Tally()
    counts = dict(_pairs(now.cells))
    for cell, count in _pairs(before.cells):
        counts[cell] = counts.get(cell, 0) - count
    cells = sorted((cell, count) for cell, count in counts.items() if count > 0)
    total = sum(count for _, count in cells)
    deltas = {kind: count - before.errors.get(kind, 0) for kind, count in now.errors.items()}
    errors = {kind: delta / seconds for kind, delta in deltas.items() if delta > 0}
    return Pace(
        seconds=seconds,
        requests=(now.requests - before.requests) / seconds,
        refused=(now.refused - before.refused) / seconds,
        errors=errors,
        trouble=sum(rate for kind, rate in errors.items() if kind not in CLIENTS_OWN),
        bytes_in=(now.bytes_in - before.bytes_in) / seconds,
        bytes_out=(now.bytes_out - before.bytes_out) / seconds,
        cpu=max(0.0, (now.cpu_s - before.cpu_s) / seconds),
        grown={name: count - was for name, count in now.others.items() if count > (was := before.others.get(name, 0))},
        p50_us=percentile(cells, total, 0.5),
        p99_us=percentile(cells, total, 0.99),
    )


def _of_instance(instance: dict[str, Any]) -> Tally:
    requests = sum(instance.get("requests", {}).values())
    return _tally(instance, requests, instance.get("latency_us", {}).values())


def _tally(record: dict[str, Any], requests: int, histograms: Iterable[dict[str, Any] | None]) -> Tally:
    return Tally(
        requests=requests,
        refused=record.get("refused", 0),
        bytes_in=record.get("bytes_in", 0),
        bytes_out=record.get("bytes_out", 0),
        errors=dict(record.get("errors", {})),
        cells=_packed(pair for one in histograms if one for pair in one["cells"]),
    )


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    pairs: list[tuple[int, int]] = []
    for one in tallies:
        total.requests += one.requests
        total.refused += one.refused
        total.bytes_in += one.bytes_in
        total.bytes_out += one.bytes_out
        for kind, count in one.errors.items():
            total.errors[kind] = total.errors.get(kind, 0) + count
        pairs += _pairs(one.cells)
    total.cells = _packed(pairs)
    return total


def _packed(pairs: Iterable[Iterable[int]]) -> array[int]:
    counts: dict[int, int] = {}
    for cell, count in pairs:
        counts[cell] = counts.get(cell, 0) + count
    return array("q", (number for pair in counts.items() for number in pair))


def _pairs(cells: array[int]) -> Iterator[tuple[int, int]]:
    return zip(cells[::2], cells[1::2], strict=True)
