"""The table keeps JSON, Prometheus and the page in step."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from hyper_proxy.stats.histogram import Histogram
from hyper_proxy.stats.instance import InstanceStats
from hyper_proxy.stats.merge import merge
from hyper_proxy.stats.prometheus import families
from hyper_proxy.stats.table import COUNTER, INSTANCE, TABLE, document, metric_name, of

PAGE = Path(__file__).resolve().parents[2] / "docs/statistics.md"


def report() -> dict[str, object]:
    stats = InstanceStats(("read", "write"))
    stats.note(0, 2, 100)
    stats.note(0, 1, 3_000_000)
    stats.error("timeout")
    node_times = Histogram()
    node_times.add(70)
    node = {"requests": 5, "errors": {"reset": 1}, "latency_us": node_times.snapshot()}
    instance = stats.snapshot() | {"clients": 4, "nodes": {"a:6379": node}}
    merged = merge([{"instances": {"user": instance}}])
    return {"workers": [{"slot": 0, "rss_bytes": 10}], "instances": merged["instances"]}


class Once:
    def collect(self) -> list[Metric]:
        return list(families(report()))


def samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    registry = CollectorRegistry()
    registry.register(Once())
    parsed = text_string_to_metric_families(generate_latest(registry).decode())
    return {(one.name, frozenset(one.labels.items())): one.value for family in parsed for one in family.samples}


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text() == document(), "python -m hyper_proxy.stats.table > docs/statistics.md"


def test_names_are_unique() -> None:
    assert len({(row.where, row.name) for row in TABLE}) == len(TABLE)
    assert len({metric_name(row) for row in TABLE}) == len(TABLE)


def test_counters_end_in_total() -> None:
    assert all(metric_name(row).endswith("_total") == (row.kind == COUNTER) for row in TABLE)


def test_an_instance_reports_what_the_table_says() -> None:
    behind = {"behind", "behind_retries", "behind_lost"}
    local = {"local_hits", "local_misses", "local_keys", "local_bytes"}
    levels = {row.name for row in of(INSTANCE) if row.split == "level" or row.name.startswith("below_")}
    owners = {"clients", "in_flight", "slow", "unlogged"} | behind | local | levels  # that the engine adds
    assert InstanceStats(("read",)).snapshot().keys() | owners == {row.name for row in of(INSTANCE)}


def test_prometheus_reads_every_number() -> None:
    found = samples()
    user = ("instance", "user")
    assert found["hyper_proxy_worker_rss_bytes", frozenset({("slot", "0")})] == 10
    assert found["hyper_proxy_instance_clients", frozenset({user})] == 4
    assert found["hyper_proxy_instance_requests_total", frozenset({user, ("class", "read")})] == 3
    assert found["hyper_proxy_instance_errors_total", frozenset({user, ("kind", "timeout")})] == 1
    assert found["hyper_proxy_node_requests_total", frozenset({user, ("node", "a:6379")})] == 5


def test_prometheus_buckets_are_exact_at_their_bounds() -> None:
    found = samples()
    read = {("instance", "user"), ("class", "read")}
    name = "hyper_proxy_instance_latency_seconds"
    assert found[f"{name}_bucket", frozenset({*read, ("le", "6.4e-05")})] == 0
    assert found[f"{name}_bucket", frozenset({*read, ("le", "0.000128")})] == 2
    assert found[f"{name}_bucket", frozenset({*read, ("le", "4.194304")})] == 3
    assert found[f"{name}_bucket", frozenset({*read, ("le", "+Inf")})] == 3
    assert found[f"{name}_count", frozenset(read)] == 3
    assert found[f"{name}_sum", frozenset(read)] == 3.0002
