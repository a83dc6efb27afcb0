"""GET /metrics: the merged counters and the state of the fleet in Prometheus' text form, made anew for each scrape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from hyper_proxy.stats.prometheus import families
from supervisor.sidecar.report import stats_report


def exposition(answer: dict[str, Any], accept: str) -> tuple[bytes, str]:
    """The text for the master's answer to "stats", and its content type: OpenMetrics for those that ask for it."""
    registry = CollectorRegistry()
    registry.register(_Snapshot(stats_report(answer)))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Snapshot(Collector):
    """Collects from one document of /stats; lives for one scrape."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._report = report

    def collect(self) -> Iterable[Metric]:
        yield from families(self._report)
