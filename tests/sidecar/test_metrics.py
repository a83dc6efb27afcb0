"""GET /metrics as Prometheus reads it: types, names that are documented, counters that outlive workers and reloads."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from hyper_proxy.stats.table import COUNTER, TABLE, metric_name
from tests.kit.fleet import ROOT
from tests.kit.wait import wait_for
from tests.sidecar.conftest import HOSTILE, Shop

StartShop = Callable[..., Shop]
Value = tuple[str, frozenset[tuple[str, str]]]


def scrape(shop: Shop) -> dict[str, Metric]:
    answer = shop.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {family.name: family for family in text_string_to_metric_families(answer.body.decode())}


def values(families: dict[str, Metric], kind: str) -> dict[Value, float]:
    """By name and labels; of counters and histograms only what grows."""
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in families.values()
        if family.type == kind
        for one in family.samples
        if not one.name.endswith("_created")
    }


def test_every_family_is_documented_and_has_its_type_and_help(start_shop: StartShop) -> None:
    shop = start_shop(workers=2)
    with shop.client() as client:
        client.get("k")
    families = scrape(shop)
    page = (ROOT / "docs" / "statistics.md").read_text()
    for row in TABLE:
        name = metric_name(row)
        family = families[name.removesuffix("_total") if row.kind == COUNTER else name]
        assert (family.type, family.documentation) == (row.kind, row.help)
        assert f"`{name}`" in page
    assert len(families) == len(TABLE), "and no other"
    nodes = families["hyper_proxy_node_requests"].samples
    assert {one.labels["node"] for one in nodes} == {"plain", HOSTILE}
    assert families["hyper_proxy_fleet_workers_ready"].samples[0].value == 2


def test_openmetrics_for_those_that_ask_for_it(start_shop: StartShop) -> None:
    answer = start_shop().ask("/metrics", Accept="application/openmetrics-text; version=1.0.0; q=0.5, */*;q=0.1")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    parsed = {family.name: family for family in parse_openmetrics(answer.body.decode())}
    assert len(parsed) == len(TABLE)


def test_counters_outlive_workers_and_reloads_and_gauges_of_the_dead_vanish(start_shop: StartShop) -> None:
    shop = start_shop()
    client = shop.client()
    for _ in range(30):
        client.get("k")
    before = scrape(shop)
    assert before["hyper_proxy_instance_clients"].samples[0].value == 1
    # Its last words are those of the second before; a worker that was told its figures has told all.
    shop.fleet.kill_worker()
    wait_for(lambda: shop.ask("/stats").json["workers"][0]["restarts"] == 1, "another worker")
    wait_for(shop.fleet.is_ready, "it is ready")
    after = scrape(shop)
    grown = values(before, "counter") | values(before, "histogram")
    now = values(after, "counter") | values(after, "histogram")
    shrunk = [name for name, value in grown.items() if now.get(name, 0) < value]
    assert not [name for name, _ in shrunk if not name.startswith("hyper_proxy_worker_")]
    assert after["hyper_proxy_instance_clients"].samples[0].value == 0

    shop.fleet.write(shop.config.replace("read_ms = 500", "read_ms = 501"))
    assert shop.fleet.reload().accepted
    reloaded = values(scrape(shop), "counter")
    lost = [name for name, value in values(after, "counter").items() if reloaded.get(name, 0) < value]
    assert not lost
