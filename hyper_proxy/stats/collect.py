"""What one worker has counted, as plain data that travels to the sidecar (merge.py adds up those of all workers)."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hyper_proxy.common.clock import now
from hyper_proxy.common.keyname import digest, readable
from hyper_proxy.common.leases import LEASES
from hyper_proxy.common.memory import rss_bytes
from hyper_proxy.stats.classes import CLASSES
from hyper_proxy.stats.slowlog import Journal
from hyper_proxy.stats.tier import COUNTS
from hyper_proxy.stats.watch import KEYS_EVERY


def collect(fronts: Mapping[str, Any], journal: Journal, worker: Mapping[str, int]) -> dict[str, Any]:
    """fronts: hyper_proxy.front.Front by instance name; journal: where they record their slow requests.

    worker: what the engine itself has counted.
    """
    connections = sum(len(front.clients) for front in fronts.values())
    instances = {name: _instance(front, journal.show_keys) for name, front in fronts.items()}
    work = {
        "requests": sum(sum(row["requests"].values()) for row in instances.values()),
        "in_flight": sum(row["in_flight"] for row in instances.values()),
        "leases_held": len(LEASES.held),
    }
    return {
        "worker": {"connections": connections, "rss_bytes": rss_bytes(), "fds": open_descriptors(), **work, **worker},
        "instances": instances,
        "slowlog": list(journal.recent),
        "events": list(journal.events),
    }


def open_descriptors() -> int:
    """How many this process has open: the kernel says it as the size of the folder since 6.2; before that one counts,
    for which a descriptor is needed. When there is none left, all of the limit are open."""
    try:
        return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))
    except OSError:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _instance(front: Any, show_keys: bool) -> dict[str, Any]:
    row: dict[str, Any] = front.stats.snapshot()
    row["bytes_in"] += sum(client.bytes_in for client in front.clients)
    row["bytes_out"] += sum(client.bytes_out for client in front.clients)
    row["clients"] = len(front.clients)
    row["in_flight"] = sum(not client.idle for client in front.clients)
    watch = front.watch
    watch.age(now())
    name = readable if show_keys else digest
    row["slow"] = watch.slow
    row["unlogged"] = watch.unlogged
    row["hot_keys"] = [[name(key), round(count)] for key, count in watch.hot.top(KEYS_EVERY)]
    row["big_keys"] = [[name(key), size] for key, size in watch.big.top()]
    backlog = getattr(front.snapshot.storage, "backlog", None)
    row["behind"] = len(backlog) if backlog is not None else 0
    row["behind_retries"] = backlog.retries if backlog is not None else 0
    row["behind_lost"] = backlog.lost if backlog is not None else 0
    copies = getattr(front.snapshot.storage, "copies", None)
    row["local_hits"] = copies.hits if copies is not None else 0
    row["local_misses"] = copies.misses if copies is not None else 0
    row["local_keys"] = len(copies) if copies is not None else 0
    row["local_bytes"] = copies.bytes if copies is not None else 0
    row |= _levels(front.snapshot.storage)
    row["nodes"] = {node.label: _node(node) for node in front.snapshot.storage.nodes}
    return row


def _levels(storage: Any) -> dict[str, Any]:
    """Of an instance with several levels, by their numbers; one in the worker's memory is the first."""
    first = 1
    if getattr(storage, "copies", None) is not None:
        first, storage = 2, storage.below
    tiers = dict(enumerate(getattr(storage, "tiers", ()), first))
    row: dict[str, Any] = {}
    for name in COUNTS:
        row[name] = {str(at): getattr(tier.counts, name) for at, tier in tiers.items()}
    owing = enumerate(getattr(storage, "marks", ()), first)
    row["marks_owed"] = {str(at): marks.count for at, marks in owing}
    gate = getattr(storage, "gate", None)
    row["below_reads"] = gate.passing if gate is not None else 0
    row["below_waiting"] = gate.waiting if gate is not None else 0
    row["below_refused"] = gate.refused if gate is not None else 0
    return row


def _node(node: Any) -> dict[str, Any]:
    lanes, standing = node.lanes, node.standing
    counts = [node.retired.by_class, *(lane.flights.counts() for lane in lanes)]
    by_class = [sum(column) for column in zip(*counts, strict=True)]
    return {
        "requests": node.retired.requests + sum(lane.sent for lane in lanes),
        "by_class": dict(zip(CLASSES, by_class, strict=True)),
        "bytes_in": node.retired.bytes_in + sum(lane.bytes_in for lane in lanes),
        "bytes_out": node.retired.bytes_out + sum(lane.bytes_out for lane in lanes),
        "errors": dict(node.errors),
        "in_flight": sum(lane.in_flight for lane in lanes),
        "queued": sum(lane.queued for lane in lanes),
        "pending_bytes": sum(lane.pending_bytes for lane in lanes),
        "connections": sum(lane.is_open for lane in lanes) + len(node.relays),
        **asdict(node.counts),
        "backing_off": int(node.is_backing_off),
        "down": int(node.is_down and not node.out),
        "out_of_service": int(bool(node.out)),
        "serving": int(standing is None or standing.serves),
        "behind": int(standing is not None and standing.is_behind),
        "missed": standing.missed if standing is not None else 0,
        "late": int(node.is_late),
        "lag_s": node.lag_s,
        "latency_us": node.latency.snapshot(),
    }
