"""What levels above another one have done: a worker's counts, and those of a fleet as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(slots=True)
class TierStats:
    """Counters by their names in table.py, which says what they mean. A reload that changes the level keeps them."""

    level_misses: int = 0
    level_skips: int = 0
    level_shared: int = 0
    level_fills: int = 0
    level_fills_skipped: int = 0
    level_refreshes: int = 0
    negative_hits: int = 0
    leases: int = 0
    lease_waits: int = 0
    lease_timeouts: int = 0


COUNTS = tuple(field.name for field in fields(TierStats))
OWED = "marks_owed"


def by_level(instances: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each level above another, of the `instances` of GET /stats: its instance, number and numbers."""
    return [
        {"instance": name, "level": level} | {what: row[what][level] for what in (*COUNTS, OWED)}
        for name, row in instances.items()
        for level in sorted(row.get(OWED, ()), key=int)
    ]
