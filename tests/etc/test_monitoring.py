"""Alert rules and dashboard name only metrics and labels that a fleet has, as Prometheus would store them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running

PROMETHEUS = ROOT / "etc" / "prometheus"
DASHBOARD = json.loads((ROOT / "etc" / "grafana" / "hyper_proxy.json").read_text())
GROUPS = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
ALERTS = [rule for group in GROUPS for rule in group["rules"]]
SCRAPE = yaml.safe_load((PROMETHEUS / "scrape.yml").read_text())["scrape_configs"][0]

SELECTED = re.compile(r"\b(hyper_proxy_\w+|up)\b(?:\{([^}]*)\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
TARGET = {"job", "instance"}

CONFIG = """
[proxy]
workers = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["{there}:1 there", "127.0.0.1:{nobody}:1 nobody"]
  hash = "md5"
"""

Stored = dict[str, set[str]]
"""Metric -> the names of its labels."""


@pytest.fixture
def stored(redis_nodes: list[Running], tmp_path: Path) -> Iterator[Stored]:
    """What Prometheus has after a scrape of a fleet with requests, answers and errors."""
    port = free_port()
    text = CONFIG.format(port=port, there=redis_nodes[0].address, nobody=free_port())
    with Fleet(text, tmp_path) as fleet, redis.Redis(port=port, protocol=2) as client:
        for number in range(20):
            try:
                client.get(f"key{number}")
            except redis.ResponseError:
                continue
        metrics = fleet.http("GET", "/metrics")[1].decode()
    assert "hyper_proxy_node_errors_total{" in metrics
    found: Stored = {"up": set(TARGET)}
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            own = {"exported_instance" if label == "instance" else label for label in sample.labels}
            found.setdefault(sample.name, set()).update(own | TARGET)
    yield found


def expressions() -> list[str]:
    """All of the dashboard and of the rules."""
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
    notes = [note["expr"] for note in DASHBOARD["annotations"]["list"]]
    return [*panels, *notes, *(rule["expr"] for rule in ALERTS)]


def test_every_metric_and_label_that_is_asked_for_exists(stored: Stored) -> None:
    wrong = []
    for expression in expressions():
        named = SELECTED.findall(expression)
        assert named, expression
        for metric, selectors in named:
            labels = set(LABEL.findall(re.sub(r'"[^"]*"', '""', selectors)))
            for group in GROUPED.findall(expression):
                labels |= {label.strip() for label in group.split(",")}
            if metric not in stored or not labels <= stored[metric]:
                wrong.append((metric, labels - stored.get(metric, set())))
    assert wrong == []


def test_the_lists_of_the_dashboard_are_of_labels_that_exist(stored: Stored) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((\w+)(?:\{(.*)\})?, (\w+)\)", variable["query"]["query"])
            assert match is not None
            metric, selectors, label = match.groups()
            assert {label, *LABEL.findall(selectors or "")} <= stored[metric]


def test_the_texts_of_the_rules_name_labels_that_the_rule_leaves(stored: Stored) -> None:
    for rule in ALERTS:
        groups = GROUPED.findall(rule["expr"])
        metric = SELECTED.findall(rule["expr"])[0][0]
        left = {label.strip() for label in groups[0].split(",")} if groups else stored[metric]
        used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert used <= left, rule["alert"]


def test_every_rule_says_how_bad_it_is_and_what_it_is() -> None:
    assert all(rule["labels"]["severity"] in ("page", "ticket") for rule in ALERTS)
    assert all(rule["annotations"]["summary"] for rule in ALERTS)
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)
    assert {match for rule in ALERTS for match in re.findall(r'job="(\w+)"', rule["expr"])} == {SCRAPE["job_name"]}


def test_each_alert_says_in_the_documentation_what_to_do() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| (HyperProxy\w+) \| .+ \| .+ \|$", page, re.MULTILINE)
    assert sorted(rows) == sorted(rule["alert"] for rule in ALERTS)


def test_the_sidecar_is_scraped_where_it_listens_by_default() -> None:
    sample = (ROOT / "etc" / "hyper_proxy.toml").read_text()
    assert f'#listen = "{SCRAPE["static_configs"][0]["targets"][0]}"' in sample


def test_parentheses_are_balanced() -> None:
    for expression in expressions():
        assert all(expression.count(left) == expression.count(right) for left, right in ("()", "{}", "[]"))


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place: dict[str, Any] = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert panel["title"]
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
