"""What the page shows, as plain data: the templates only lay it out, and /?format=json returns it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hyper_proxy.stats.state import BAD, EXPECTED, level_of, word_of
from hyper_proxy.stats.tier import by_level
from supervisor.sidecar.health import readiness
from supervisor.sidecar.history import History, Point
from supervisor.sidecar.keys import big_keys, hot_keys, server_events, slow_requests
from supervisor.sidecar.pains import pains
from supervisor.sidecar.report import stats_report
from supervisor.sidecar.sampler import sample_of
from supervisor.sidecar.samples import FLEET, Owner, Pace, Sample

SLOW_SHOWN = 20
KEYS_SHOWN = 10
EVENTS_SHOWN = 30
NODES_SHOWN = 100


def build_view(
    answer: dict[str, Any], events: dict[str, Any], config: dict[str, Any], history: History
) -> dict[str, Any]:
    """From the master's answers to "stats", "events" and "config", and what has been."""
    report = stats_report(answer)
    now = sample_of(answer, report)
    view: dict[str, Any] = {
        "at": now.at,
        "state": _state(answer),
        "fleet": report["fleet"],
        "master": report["master"],
        "config": report["config"],
        "totals": _totals(report, history, now),
        "workers": [_worker(row, history, now) for row in report["workers"]],
        "leaving": [_worker(row, history, now) for row in report["leaving"]],
        "imbalance": report["imbalance"],
        "silent": report["silent"],
        "instances": [_instance(name, row, history, now) for name, row in report["instances"].items()],
        "nodes": _nodes(report, history, now),
        "levels": by_level(report["instances"]),
        "slowlog": slow_requests(answer, SLOW_SHOWN),
        "hot_keys": hot_keys(answer, KEYS_SHOWN),
        "big_keys": big_keys(answer, KEYS_SHOWN),
        "events": _newest([*events["events"], *server_events(answer), *history.events()]),
        "overrides": overrides_in_words(answer["overrides"]),
        "changes": config["changes"],
        "settings": config["settings"],
    }
    found = pains(view)
    view["pains"] = [asdict(pain) for pain in found]
    hurts, down = any(pain.level == BAD for pain in found), any(row["down"] for row in view["nodes"])
    view["state"]["word"] = word = _word(answer, hurts, down)
    view["state"]["level"] = level_of(word)
    return view


def points_of(view: dict[str, Any], history: History) -> dict[Owner, list[Point]]:
    """What is plotted: the fleet, its instances and those of its nodes that the page shows."""
    owners: list[Owner] = [FLEET]
    owners += [("instance", row["instance"]) for row in view["instances"]]
    owners += [("node", row["instance"], row["node"]) for row in view["nodes"][:NODES_SHOWN]]
    return {owner: history.points(owner) for owner in owners}


def overrides_in_words(overrides: dict[str, Any]) -> list[str]:
    """What operators have ordered, one sentence each."""
    found = []
    if drained := overrides["drained"]:
        found.append(f"out of rotation by order of {drained['who']}")
    if level := overrides["log_level"]:
        found.append(f"log level {level['level']} by order of {level['who']}")
    found += [
        f"server {row['node']} of instance {row['instance']}: {row['state']} by order of {row['who']}"
        for row in overrides["nodes"]
    ]
    found += [
        f"instance {row['instance']}: the {row['room']} room serves by order of {row['who']}"
        for row in overrides.get("rooms", [])
    ]
    return found


def _state(answer: dict[str, Any]) -> dict[str, Any]:
    reasons = readiness(answer)
    return {"serving": not reasons, "word": _word(answer), "reasons": reasons}


def _word(answer: dict[str, Any], hurts: bool = False, server_down: bool = False) -> str:
    whole = all(row["state"] == "ready" for row in answer["workers"])
    return word_of(answer["master"]["state"], whole, hurts, server_down)


def _totals(report: dict[str, Any], history: History, now: Sample) -> dict[str, Any]:
    instances = report["instances"].values()
    return {
        "clients": sum(row.get("clients", 0) for row in instances),
        "in_flight": sum(row.get("in_flight", 0) for row in instances),
        "since": history.since(FLEET),
    } | _paced(history.pace(now, FLEET))


def _worker(row: dict[str, Any], history: History, now: Sample) -> dict[str, Any]:
    pace = history.pace(now, ("worker", str(row["pid"])))
    lacking = dict.fromkeys(("connections", "rss_bytes", "fds"))
    return lacking | row | _paced(pace) | {"cpu": pace.cpu if pace.seconds else None}


def _instance(name: str, row: dict[str, Any], history: History, now: Sample) -> dict[str, Any]:
    nodes = row.get("nodes", {}).values()
    return {
        "instance": name,
        "since": history.since(("instance", name)),
        "clients": row.get("clients", 0),
        "in_flight": row.get("in_flight", 0),
        "queued": sum(node.get("queued", 0) for node in nodes),
        "servers": len(nodes),
        "servers_out": sum(bool(node.get("down")) for node in nodes),
    } | _watched(history, now, ("instance", name))


def _nodes(report: dict[str, Any], history: History, now: Sample) -> list[dict[str, Any]]:
    """Those in trouble first, then the busy ones."""
    rows = [
        {
            "instance": name,
            "node": label,
            "since": history.since(("node", name, label)),
            "down": node.get("down", 0),
            "out_of_service": node.get("out_of_service", 0),
            "state": _node_state(node),
            "in_flight": node.get("in_flight", 0),
            "queued": node.get("queued", 0),
            "pending_bytes": node.get("pending_bytes", 0),
            "connections": node.get("connections", 0),
        }
        | _watched(history, now, ("node", name, label))
        for name, instance in report["instances"].items()
        for label, node in instance.get("nodes", {}).items()
    ]
    return sorted(rows, key=lambda row: (not row["down"], not row["failing"], not row["trouble"], -row["requests"]))


def _node_state(node: dict[str, Any]) -> str:
    if node.get("out_of_service"):
        return "out of service"
    if node.get("down"):
        return "down"
    if not node.get("serving", 1):
        return "behind" if node["behind"] else "spare"
    return "up" if node.get("connections") else "idle" if node.get("connects") else "untried"


def _watched(history: History, now: Sample, owner: Owner) -> dict[str, Any]:
    """The last minute, with `trouble` but for what an operator has ordered, and whether that goes on."""
    pace = history.pace(now, owner)
    recent = _unordered(history.latest(now, owner))
    return _paced(pace) | {"trouble": _unordered(pace), "failing": recent > 0}


def _unordered(pace: Pace) -> float:
    return sum(rate for kind, rate in pace.errors.items() if kind not in EXPECTED)


def _paced(pace: Pace) -> dict[str, Any]:
    row = asdict(pace)
    del row["cpu"]
    return row


def _newest(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(events, key=lambda event: float(event["at"]), reverse=True)[:EVENTS_SHOWN]
