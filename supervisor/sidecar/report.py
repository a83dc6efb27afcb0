"""Puts /stats together: the master's status, and the counters of all workers, living and ended, merged."""

from __future__ import annotations

from typing import Any

from hyper_proxy.stats.merge import imbalance, merge

SCHEMA = 1


def stats_report(answer: dict[str, Any]) -> dict[str, Any]:
    """The document of GET /stats from the master's answer to "stats"."""
    merged = merge([answer["retired"], *answer["snapshots"]])
    return {
        "schema": SCHEMA,
        "fleet": answer["fleet"],
        "master": answer["master"],
        "workers": answer["workers"],
        "overrides": answer["overrides"],
        "imbalance": imbalance(answer["workers"]),
        "silent": answer["silent"],
        "instances": merged["instances"],
        "config": answer["config"],
    }
