"""Where it hurts: what somebody who was paged must see first, each with since when. One function a row.

The view (view.py) gives them its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hyper_proxy.stats.state import BAD, EXPECTED, WARNING
from supervisor.sidecar.formats import duration, number

LAG_S = 0.2
SILENT_S = 2.0
IMBALANCE = 2.0
# With so few connections for each worker a hash is uneven, and nothing is wrong.
IMBALANCE_FROM = 8
QUEUED = 1000
# As that of the alert HyperProxyServerSlow; of fewer answers in the minute one says little.
SLOW_US = 100_000
SLOW_FROM = 20
# A worker that was replaced so lately is still a pain.
DEATH_S = 600.0

View = dict[str, Any]

GROWING: dict[str, tuple[str, str]] = {
    "accept_pauses": (BAD, "has no descriptor left and accepts nobody"),
    "memory_shortages": (BAD, "is short of memory and takes in less"),
    "replies_dropped": (BAD, "drops large replies, since memory is short"),
    "faults": (BAD, "met an error of its own, which nobody has foreseen: the log has it"),
    "log_lost": (WARNING, "drops lines of the log, since the disk is slow"),
}
"""Counters of a worker that hurt when they grow."""


@dataclass(frozen=True, slots=True)
class Pain:
    """`since` is in seconds since 1970, None when that is not known; `where` is the part of the page with more."""

    level: str
    text: str
    where: str
    since: float | None = None


def name_of(row: View) -> str:
    """Of a worker."""
    return f"worker {row['slot']}"


def pains(view: View) -> list[Pain]:
    """All of them, the worst first."""
    found = [pain for check in CHECKS for pain in check(view)]
    return sorted(found, key=lambda pain: pain.level != BAD)


def _door(view: View) -> Iterator[Pain]:
    if view["state"]["word"] != "drained":  # an order, of which _orders tells
        for reason in view["state"]["reasons"]:
            yield Pain(BAD, f"no client should come here: {reason}", "fleet")


def _servers(view: View) -> Iterator[Pain]:
    whole = {row["instance"] for row in view["instances"] if row["requests"] and not row["trouble"]}
    for node in view["nodes"]:
        name = f"server {node['node']} of instance {node['instance']}"
        spared = node["instance"] in whole  # a route, a peer or a level below stands in for it
        level, rest = (WARNING, "; clients get no errors") if spared else (BAD, "")
        if node["down"]:
            text = f"{name} is down for {node['down']} of {len(view['workers'])} workers{_kinds(node)}{rest}"
            yield Pain(level, text, "nodes", node["since"])
        elif node["failing"]:
            yield Pain(level, f"{name} fails{_kinds(node)}{rest}", "nodes", node["since"])
        elif node["trouble"]:
            yield Pain(WARNING, f"{name} is well again; it failed within the last minute{_kinds(node)}", "nodes")
        elif node["p99_us"] > SLOW_US and node["requests"] * node["seconds"] >= SLOW_FROM:
            text = f"{name} is slow: one answer in a hundred takes {duration(node['p99_us'])} or longer"
            yield Pain(WARNING, text, "nodes")
        elif node["queued"] >= QUEUED:
            yield Pain(WARNING, f"{number(node['queued'])} requests wait to be sent to {name}", "nodes")


def _instances(view: View) -> Iterator[Pain]:
    for row in view["instances"]:
        if row["failing"]:
            text = f"clients of instance {row['instance']} get errors{_kinds(row)}"
            yield Pain(BAD, text, "instances", row["since"])
        elif row["trouble"]:
            text = f"clients of instance {row['instance']} get no errors any more; within the last minute they got"
            yield Pain(WARNING, f"{text}{_kinds(row)}", "instances")
        if row["refused"]:
            yield Pain(BAD, f"instance {row['instance']} refuses clients: too many of them", "instances")


def _workers(view: View) -> Iterator[Pain]:
    for row in view["workers"]:
        name = name_of(row)
        if row["state"] != "ready":
            cause = f"; the last one ended: {row['last_exit']}" if row["last_exit"] else ""
            if row["adopted_by"] is not None:
                cause += f"; worker {row['adopted_by']} serves its clients"
            yield Pain(BAD if row["state"] in ("waiting", "quarantined", "hung") else WARNING,
                       f"{name} is {row['state']}{cause}", "fleet")  # fmt: skip
            continue
        if row["restarts"] and row["last_exit"] and row["uptime_s"] < DEATH_S:
            text = f"{name} was replaced; its predecessor ended: {row['last_exit']}"
            yield Pain(WARNING, text, "fleet", view["at"] - row["uptime_s"])
        for name in GROWING.keys() & row["grown"].keys():
            level, text = GROWING[name]
            yield Pain(level, f"{name_of(row)} {text}: {number(row['grown'][name])} times in the last minute", "fleet")
        if (row["beat_age_s"] or 0) > SILENT_S:
            yield Pain(BAD, f"{name} has not said a word for {row['beat_age_s']:.0f} s", "fleet")
        elif row["loop_lag_s"] > LAG_S:
            yield Pain(WARNING, f"{name} is late by {duration(row['loop_lag_s'] * 1e6)}: it is too busy", "fleet")
        if row["slot"] in view["silent"]:
            yield Pain(WARNING, f"{name} did not tell its counters in time; those shown are older", "fleet")


def _balance(view: View) -> Iterator[Pain]:
    connections = [row["connections"] for row in view["workers"] if row["connections"] is not None]
    if view["imbalance"] > IMBALANCE and sum(connections) >= IMBALANCE_FROM * len(connections):
        text = f"the busiest worker has {view['imbalance']:.1f} times the connections of the average"
        yield Pain(WARNING, text, "fleet")


def _orders(view: View) -> Iterator[Pain]:
    for text in view["overrides"]:
        yield Pain(WARNING, text, "events")


def _reload(view: View) -> Iterator[Pain]:
    last = view["config"]["last_reload"]
    if not last["ok"]:
        text = f"the last reload was refused; generation {last['generation']} goes on serving"
        yield Pain(WARNING, text, "reload-failed", last["at"])


def _upgrade(view: View) -> Iterator[Pain]:
    last = view["master"]["last_upgrade"]
    if last and not last["ok"]:
        yield Pain(WARNING, f"the last upgrade failed; the old program stays: {last['error']}", "events", last["at"])


def _kinds(row: View) -> str:
    kinds = [f"{number(rate)}/s {kind}" for kind, rate in row["errors"].items() if kind not in EXPECTED]
    return ": " + ", ".join(kinds) if kinds else ""


CHECKS: tuple[Callable[[View], Iterator[Pain]], ...] = (
    _door, _servers, _instances, _workers, _balance, _reload, _upgrade, _orders,
)  # fmt: skip
