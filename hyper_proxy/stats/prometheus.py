"""The document of GET /stats as Prometheus metric families; the only file that knows prometheus_client's classes here.

Buckets lie at powers of two microseconds, where octaves of the histogram's cells end, so their counts are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from hyper_proxy.stats.histogram import highest_us
from hyper_proxy.stats.table import (
    CONFIG,
    COUNTER,
    FLEET,
    GAUGE,
    HISTOGRAM,
    INSTANCE,
    NODE,
    TABLE,
    WORKER,
    Statistic,
    metric_name,
)

BUCKETS_US = [1 << power for power in range(6, 27)]  # 64 microseconds to 67 seconds
FAMILIES: dict[str, Any] = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily, HISTOGRAM: HistogramMetricFamily}
LABELS: dict[str, list[str]] = {
    FLEET: [],
    CONFIG: [],
    WORKER: ["slot"],
    INSTANCE: ["instance"],
    NODE: ["instance", "node"],
}

Records = list[tuple[list[str], dict[str, Any]]]  # label values, and the numbers they belong to


def families(report: dict[str, Any]) -> Iterator[Metric]:
    """One family for each row of the table; what a record lacks is left out."""
    instances: dict[str, dict[str, Any]] = report.get("instances", {})
    records: dict[str, Records] = {
        FLEET: [([], _fleet(report))],
        CONFIG: [([], _config(report.get("config")))],
        WORKER: [([str(worker["slot"])], worker) for worker in report.get("workers", [])],
        INSTANCE: [([name], instance) for name, instance in instances.items()],
        NODE: [
            ([name, label], node)
            for name, instance in instances.items()
            for label, node in instance.get("nodes", {}).items()
        ],
    }
    for row in TABLE:
        yield family(row, records[row.where])


def _fleet(report: dict[str, Any]) -> dict[str, Any]:
    """What is told of the fleet as a whole."""
    workers = report.get("workers", [])
    return {
        "uptime_s": report.get("master", {}).get("uptime_s"),
        "workers": len(workers),
        "workers_ready": sum(worker.get("state") == "ready" for worker in workers),
        "workers_leaving": len(report.get("leaving", [])),
        "imbalance": report.get("imbalance"),
    }


def _config(config: dict[str, Any] | None) -> dict[str, Any]:
    if config is None:
        return {}
    return {
        "generation": config["generation"],
        "last_reload_successful": int(config["last_reload"]["ok"]),
        "last_reload_success_timestamp_s": config["last_success_at"],
    }


def family(row: Statistic, records: Records) -> Metric:
    """All values of one statistic."""
    split = [row.split] if row.split else []
    metric: Metric = FAMILIES[row.kind](metric_name(row), row.help, labels=LABELS[row.where] + split)
    for labels, record in records:
        value = record.get(row.name)
        if value is None:
            continue
        for name, one in value.items() if row.split else [(None, value)]:
            add(metric, row.kind, labels if name is None else [*labels, name], one)
    return metric


def add(metric: Any, kind: str, labels: list[str], value: Any) -> None:
    """One value to its family."""
    if kind == HISTOGRAM:
        metric.add_metric(labels, buckets=buckets(value["cells"]), sum_value=value["sum_us"] / 1e6)
    else:
        metric.add_metric(labels, value)


def buckets(cells: Iterable[list[int]]) -> list[tuple[str, int]]:
    """Cumulative counts by upper bound in seconds."""
    pairs = [(highest_us(cell), count) for cell, count in cells]
    rows = [(repr(bound / 1e6), sum(count for high, count in pairs if high < bound)) for bound in BUCKETS_US]
    return [*rows, ("+Inf", sum(count for _, count in pairs))]
