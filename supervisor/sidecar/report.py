"""Puts /stats together: the master's status, and the counters of all workers, living and ended, merged."""

from __future__ import annotations

from typing import Any

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.stats.merge import imbalance, known, merge

SCHEMA = 1


class Unknown(HyperProxyError):
    """The query names a worker, an instance or a node that is not there."""

    kind = "unknown"


def stats_report(answer: dict[str, Any], worker: int | None = None) -> dict[str, Any]:
    """The document of GET /stats from the master's answer to "stats"; of one worker alone, if its slot is given.

    Raises Unknown when that slot has no worker.
    """
    workers = answer["workers"]
    if worker is None:
        living = [row["data"] for row in answer["snapshots"]]
        parts = [known(answer["retired"], living), *living]
    else:
        parts = [row["data"] for row in answer["snapshots"] if row["slot"] == worker]
        workers = [row for row in workers if row["slot"] == worker]
        if not workers:
            raise Unknown(f"there is no worker {worker}: {', '.join(str(row['slot']) for row in answer['workers'])}")
    return {
        "schema": SCHEMA,
        "fleet": answer["fleet"],
        "master": answer["master"],
        "workers": workers,
        "overrides": answer["overrides"],
        "imbalance": imbalance(workers),
        "leaving": answer["leaving"],
        "silent": answer["silent"],
        "instances": merge(parts)["instances"],
        "config": answer["config"],
    }


def select(report: dict[str, Any], instance: str | None, node: str | None) -> dict[str, Any]:
    """The same with one instance alone, and of each instance with one node alone. Raises Unknown."""
    instances: dict[str, Any] = report["instances"]
    if instance is not None:
        if instance not in instances:
            raise Unknown(f"there is no instance '{instance}': {', '.join(instances)}")
        instances = {instance: instances[instance]}
    if node is not None:
        known = dict.fromkeys(name for row in instances.values() for name in row.get("nodes", {}))
        instances = {
            name: row | {"nodes": {node: row["nodes"][node]}}
            for name, row in instances.items()
            if node in row.get("nodes", {})
        }
        if not instances:
            raise Unknown(f"there is no node '{node}': {', '.join(known)}")
    return report | {"instances": instances}
