"""What operators have ordered of the running fleet: a layer over the configuration, which a reload does not touch.

A server that was taken out of service by hand must not come back because somebody edited the file; and what was
ordered must be seen, and be taken back. An upgrade hands it on; else it ends with the master: a fresh start has no
orders.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class By:
    """Who has given an order, and when, in seconds since 1970."""

    who: str
    at: float


def by(who: str) -> By:
    """Of an order that is given now."""
    return By(who, time.time())


@dataclass(slots=True)
class Overrides:
    """`nodes` are those out of service, by instance and label: how ("drained", "maintenance"), and by whose order.

    `rooms` are those that are to serve, by instance ("first", "second"), and by whose order.
    """

    drained: By | None = None
    log_level: str = ""
    log_level_by: By | None = None
    nodes: dict[tuple[str, str], tuple[str, By]] = field(default_factory=dict)
    rooms: dict[str, tuple[str, By]] = field(default_factory=dict)

    @classmethod
    def of(cls, report: dict[str, Any]) -> Overrides:
        """From what `report` returned, of another master perhaps; what it does not say is not ordered."""
        layer = cls()
        if drained := report.get("drained"):
            layer.drained = By(drained["who"], drained["at"])
        if level := report.get("log_level"):
            layer.log_level, layer.log_level_by = level["level"], By(level["who"], level["at"])
        for row in report.get("nodes", []):
            layer.nodes[row["instance"], row["node"]] = row["state"], By(row["who"], row["at"])
        for row in report.get("rooms", []):
            layer.rooms[row["instance"]] = row["room"], By(row["who"], row["at"])
        return layer

    def for_workers(self) -> dict[str, Any]:
        """The whole layer as a worker is told of it, at its birth and after each change."""
        nodes: dict[str, dict[str, str]] = {}
        for (instance, label), (state, _) in self.nodes.items():
            nodes.setdefault(instance, {})[label] = state
        rooms = {instance: room for instance, (room, _) in self.rooms.items()}
        return {"log_level": self.log_level, "nodes": nodes, "rooms": rooms}

    def report(self) -> dict[str, Any]:
        """As JSON, for people: the same with who and when."""
        return {
            "drained": asdict(self.drained) if self.drained else None,
            "log_level": {"level": self.log_level} | asdict(self.log_level_by) if self.log_level_by else None,
            "nodes": [
                {"instance": instance, "node": label, "state": state} | asdict(ordered)
                for (instance, label), (state, ordered) in sorted(self.nodes.items(), key=lambda row: row[0])
            ],
            "rooms": [
                {"instance": instance, "room": room} | asdict(ordered)
                for instance, (room, ordered) in sorted(self.rooms.items())
            ],
        }

    def clear(self) -> None:
        """Takes everything back."""
        self.drained = self.log_level_by = None
        self.log_level = ""
        self.nodes.clear()
        self.rooms.clear()
