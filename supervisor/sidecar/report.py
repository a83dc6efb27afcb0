"""Puts /stats together: the master's status, and the counters of all workers, living and ended, merged."""

from __future__ import annotations

from typing import Any

SCHEMA = 1


def stats_report(answer: dict[str, Any]) -> dict[str, Any]:
    """The document of GET /stats from the master's answer to "stats"."""
    from hyper_proxy.stats.merge import merge

    retired = [answer["retired"]] if answer["retired"] else []
    merged = merge([*retired, *answer["snapshots"]])
    return {
        "schema": SCHEMA,
        "master": answer["master"],
        "workers": answer["workers"],
        "silent": answer["silent"],
        "instances": merged["instances"],
        "config": answer["config"],
    }
