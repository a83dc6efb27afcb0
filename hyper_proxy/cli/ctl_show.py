"""The sidecar's answers as text for people: one function for each kind of answer."""

from __future__ import annotations

import json
from typing import Any

from hyper_proxy import __version__
from hyper_proxy.cli.formats import Row, duration, moment, size, table
from hyper_proxy.stats.merge import histogram
from hyper_proxy.stats.tier import by_level

Answer = dict[str, Any]


def pretty(answer: Answer) -> str:
    """JSON for people."""
    return json.dumps(answer, indent=2)


def verdict(answer: Answer) -> str:
    """What became of a reload."""
    if answer["ok"]:
        lines = [f"reloaded: generation {answer['generation']}, {answer['summary']}"]
    else:
        lines = [f"refused, generation {answer['generation']} goes on serving:", answer["error"]]
    return "\n".join([*lines, *answer["warnings"]])


def summary(answer: Answer) -> str:
    """What an order came to."""
    return str(answer["summary"])


def readiness(answer: Answer) -> str:
    """Ready, and where it hurts (`page`: what / says); or why not."""
    if not answer["ready"]:
        return "\n".join(["not ready:", *answer["reasons"]])
    page = answer.get("page", {})
    pains = [f"  {pain['text']}" for pain in page.get("pains", ())]
    more = [f"  and {len(pains) - PAINS} more: see the page"] if len(pains) > PAINS else []
    word = page["state"]["word"] if pains else ""
    return "\n".join([f"ready; {word}:" if word else "ready", *pains[:PAINS], *more])


PAINS = 8
"""Of so many pains the worst are told; the page has all."""
WORKER_HEAD = (
    "slot", "pid", "generation", "state", "uptime", "restarts", "clients", "cpu_s", "memory", "lag_ms", "last_exit",
)  # fmt: skip


def workers(answer: Answer) -> str:
    """One line for each slot, then the workers of older generations."""
    text = table(WORKER_HEAD, map(_worker, answer["workers"]))
    if answer.get("leaving"):
        text += "\n\nof older generations:\n" + table(WORKER_HEAD, map(_worker, answer["leaving"]))
    return text


def _worker(row: Answer) -> Row:
    return (
        row["slot"], row["pid"] or None, row["generation"], _state(row), duration(row["uptime_s"]), row["restarts"],
        row.get("connections"), row.get("cpu_s"), size(row.get("rss_bytes")), round(row["loop_lag_s"] * 1000, 1),
        _last_exit(row),
    )  # fmt: skip


def _state(row: Answer) -> str:
    """With the slot whose worker accepts for this one."""
    return f"{row['state']}, {row['adopted_by']} accepts" if row.get("adopted_by") is not None else row["state"]


def _last_exit(row: Answer) -> str:
    """With how long that worker has lived."""
    return f"{row['last_exit']} (lived {duration(row['exit']['uptime_s'])})" if row.get("exit") else row["last_exit"]


def memory(answer: Answer) -> str:
    """What each worker holds, and all of them."""
    rows = [row for row in (*answer["workers"], *answer.get("leaving", [])) if "rss_bytes" in row]
    lines = [(row["slot"], row["pid"], size(row["rss_bytes"]), row.get("connections")) for row in rows]
    total = ("all", None, size(sum(row["rss_bytes"] for row in rows)), sum(row.get("connections", 0) for row in rows))
    return table(("slot", "pid", "memory", "clients"), [*lines, total])


def instances(answer: Answer) -> str:
    """One line for each instance: counters since the fleet began."""
    head = ("instance", "clients", "in_flight", "requests", "errors", "p50_us", "p99_us", "in", "out", "nodes")
    rows = []
    for name, row in answer["instances"].items():
        latency = histogram(row["latency_us"].values()) if "latency_us" in row else {"p50": None, "p99": None}
        requests, errors = sum(row.get("requests", {}).values()), sum(row.get("errors", {}).values())
        rows.append(
            (
                name, row.get("clients"), row.get("in_flight"), requests, errors, latency["p50"], latency["p99"],
                size(row.get("bytes_in", 0)), size(row.get("bytes_out", 0)), len(row.get("nodes", {})),
            )
        )  # fmt: skip
    return table(head, rows)


LEVEL_HEAD = {
    "instance": "instance", "level": "level", "level_misses": "misses", "level_skips": "skips",
    "level_shared": "shared", "negative_hits": "negative", "leases": "leases", "lease_waits": "waits",
    "lease_timeouts": "timeouts", "level_fills": "fills", "level_fills_skipped": "not_filled",
    "level_refreshes": "refreshes", "marks_owed": "owed",
}  # fmt: skip


def levels(answer: Answer) -> str:
    """One line for each level of servers above another one, then of the copies in the workers."""
    rows = [[row[name] for name in LEVEL_HEAD] for row in by_level(answer["instances"])]
    local = [
        f"{name} keeps copies in its workers (local): {row['local_hits']} hits, {row['local_misses']} misses, "
        f"{row['local_keys']} keys, {size(row['local_bytes'])}"
        for name, row in answer["instances"].items()
        if row.get("local_hits") or row.get("local_misses")
    ]
    above = [table(list(LEVEL_HEAD.values()), rows)] if rows else []
    return "\n".join([*above, *local]) or "no level above another has been used yet"


def nodes(answer: Answer) -> str:
    """One line for each server: its state, and counters since the fleet began; then who has none."""
    head = (
        "instance", "node", "state", "connections", "in_flight", "queued", "requests", "errors", "p50_us", "p99_us",
    )  # fmt: skip
    states = node_states(answer)
    rows = [
        (
            name, label, states[name, label], row["connections"], row["in_flight"], row["queued"], row["requests"],
            sum(row["errors"].values()), row["latency_us"].get("p50"), row["latency_us"].get("p99"),
        )
        for name, instance in answer["instances"].items()
        for label, row in instance.get("nodes", {}).items()
    ]  # fmt: skip
    without = [name for name, instance in answer["instances"].items() if not instance.get("nodes")]
    told = f"the proxy connects to no server for {', '.join(without)}: a file or a plug-in keeps the values"
    return "\n".join([*([table(head, rows)] if rows else []), *([told] if without else [])])


def node_states(report: Answer) -> dict[tuple[str, str], str]:
    """In a word, by instance and label: what an operator has ordered, or what was seen of it."""
    ordered = {(row["instance"], row["node"]): row["state"] for row in report["overrides"]["nodes"]}
    return {
        (name, label): ordered.get((name, label)) or _seen(row)
        for name, instance in report["instances"].items()
        for label, row in instance.get("nodes", {}).items()
    }


def _seen(row: Answer) -> str:
    """down: the last attempt of a worker failed; behind: it has missed writes; spare: its peer serves;
    idle: no connection just now; untried: there was never one."""
    if row["down"]:
        return "down"
    if not row["serving"]:
        return "behind" if row["behind"] else "spare"
    return "up" if row["connections"] else "idle" if row["connects"] else "untried"


def clients(answer: Answer) -> str:
    """Who is connected."""
    head = ("worker", "address", "instance", "listener", "age", "state", "in", "out")
    rows = [
        (
            row["worker"], row["address"], row["instance"], row["listener"], duration(row["age_s"]),
            "idle" if row["idle"] else "waits", size(row["bytes_in"]), size(row["bytes_out"]),
        )
        for row in answer["clients"]
    ]  # fmt: skip
    shown = f"\n{len(rows)} of {answer['total']}; --limit N shows more" if len(rows) < answer["total"] else ""
    return table(head, rows) + shown


def listeners(answer: Answer) -> str:
    """Where clients connect."""
    head = ("instance", "protocol", "address", "worker", "queued", "backlog")
    rows = [[row[name] if row[name] is not None else "all" for name in head[:4]] for row in answer["listeners"]]
    queues = [[row["queued"], row["backlog"]] for row in answer["listeners"]]
    return table(head, [[*row, *queue] for row, queue in zip(rows, queues, strict=True)])


def overrides(answer: Answer) -> str:
    """What operators have ordered, and who."""
    found = answer["overrides"]
    rows: list[Row] = []
    if found["drained"]:
        rows.append(("drained", "", found["drained"]["who"], moment(found["drained"]["at"])))
    if found["log_level"]:
        level = found["log_level"]
        rows.append(("log-level", level["level"], level["who"], moment(level["at"])))
    rows += [
        (f"node {row['state']}", f"{row['instance']} {row['node']}", row["who"], moment(row["at"]))
        for row in found["nodes"]
    ]
    rows += [
        (f"room pin {row['room']}", row["instance"], row["who"], moment(row["at"])) for row in found.get("rooms", [])
    ]
    return table(("order", "of", "by", "at"), rows) if rows else "none: the configuration holds"


def settings(answer: Answer) -> str:
    """Every key with its value, where it comes from, and what a change takes."""
    rows = [
        (
            row["key"], row["value"], f"line {row['line']}" if row["line"] else "default", row["takes"],
        )
        for row in answer["settings"]
    ]  # fmt: skip
    return table(("key", "value", "from", "a change takes"), rows)


def events(answer: Answer) -> str:
    """The last events, as lines of the log."""
    return "\n".join(
        f"{moment(row['at'], 'milliseconds')} {row['level']} {row['event']} {_pairs(row['fields'])}".rstrip()
        for row in answer["events"]
    )


PHASES = ("parse", "queue", "connect", "storage", "merge", "write")
"""Of a slow request, in the order in which its time goes."""


def slowlog(answer: Answer) -> str:
    """Slow requests, newest first."""
    times = ("total", *PHASES)
    head = ("at", "instance", "command", "key", "client", "node", *(f"{name}_ms" for name in times), "error")
    rows = [
        (
            moment(row["at"]), row["instance"], row["command"], row["key"], row["client"], row["node"],
            *(row[f"{name}_us"] / 1000 for name in times), row["error"],
        )
        for row in answer["slowlog"]
    ]  # fmt: skip
    return table(head, rows) if rows else "no request was slow"


def _pairs(fields: Answer) -> str:
    return " ".join(f"{name}={_plain(value)}" for name, value in fields.items())


def _plain(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if text and " " not in text else json.dumps(text)


UNITS = {"hot_keys": "requests (sampled)", "big_keys": "bytes"}


def keys(answer: Answer) -> str:
    """Notable keys, by instance."""
    what = next(name for name in UNITS if name in answer)
    rows = [(name, count, key) for name, pairs in answer[what].items() for key, count in pairs]
    return table(("instance", UNITS[what], "key"), rows) if rows else "none seen"


def stacks(answer: Answer) -> str:
    """What greenlets do."""
    rows = sorted(answer["stacks"], key=lambda row: row["worker"])
    return "\n\n".join(f"worker {row['worker']} (pid {row['pid']})\n{row['text']}" for row in rows)


def version(answer: Answer) -> str:
    """Of the fleet and of this command: after an upgrade they may differ."""
    return f"fleet {answer['master']['version']}, this command {__version__}"
