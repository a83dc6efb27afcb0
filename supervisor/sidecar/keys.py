"""Slow requests and notable keys, gathered from the snapshots of the living workers; those of the dead are gone.

Every worker samples by itself. Counts of one key in several workers add up; of sizes the largest counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SHOWN = 128
KEYS_SHOWN = 50

PHASES = ("parse", "queue", "connect", "storage", "merge", "write")
"""Where the time of a slow request went, in the order in which it goes: each is PHASE_us of an entry."""


def slow_requests(answer: dict[str, Any], limit: int = SHOWN) -> list[dict[str, Any]]:
    """Of all workers, newest first. `answer` is the master's to "stats"."""
    entries = [entry for row in answer["snapshots"] for entry in row["data"].get("slowlog", [])]
    return sorted(entries, key=lambda entry: float(entry["at"]), reverse=True)[:limit]


def server_events(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What servers and rooms did, as each living worker saw it, in the form of the master's events."""
    return [event for row in answer["snapshots"] for event in row["data"].get("events", [])]


def worst_phase(entry: dict[str, Any]) -> str:
    """Where most of the time of a slow request went."""
    return max(PHASES, key=lambda phase: int(entry.get(f"{phase}_us") or 0))


def hot_keys(answer: dict[str, Any], limit: int = KEYS_SHOWN) -> dict[str, list[list[Any]]]:
    """By instance: [[key, sampled requests], ...], most first."""
    return _top(answer, "hot_keys", lambda one, other: one + other, limit)


def big_keys(answer: dict[str, Any], limit: int = KEYS_SHOWN) -> dict[str, list[list[Any]]]:
    """By instance: [[key, bytes], ...], largest first."""
    return _top(answer, "big_keys", max, limit)


def _top(
    answer: dict[str, Any], field: str, join: Callable[[int, int], int], limit: int
) -> dict[str, list[list[Any]]]:
    merged: dict[str, dict[str, int]] = {}
    for row in answer["snapshots"]:
        for name, instance in row["data"].get("instances", {}).items():
            keys = merged.setdefault(name, {})
            for key, count in instance.get(field, []):
                keys[key] = join(keys[key], count) if key in keys else count
    return {
        name: [list(pair) for pair in sorted(keys.items(), key=lambda pair: -pair[1])[:limit]]
        for name, keys in merged.items()
    }
