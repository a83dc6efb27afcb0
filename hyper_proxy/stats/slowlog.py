"""The records of slow and of sampled requests: the latest slow ones in memory, all of them in the log.

A record is made after its answer was written. How many are made is limited, so that a storage that stalls all clients
at once does not also cost the worker its time; what was left out is counted (hyper_proxy.stats.watch.Watch.unlogged).
"""

from __future__ import annotations

from collections import deque
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.clock import now

Record = dict[str, Any]

KEPT = 128
SLOW_PER_S = 100
SAMPLED_PER_S = 10_000

# A line of the log has a time and the worker's slot already.
BOUND = ("at", "slot")

# What the log says of servers is kept as well, so many lines, for who asks what happened before.
OF_SERVERS = frozenset({"node.down", "node.up", "replica.late", "replica.back", "topology.master", "topology.unknown"})
OF_ROOMS = "room."  # which one serves, and what becomes of the other: all of docs/rooms.md
LONGEST = 500


class Allowance:
    """At most so many in a second."""

    def __init__(self, per_s: int) -> None:
        self.per_s = per_s
        self.left = per_s
        self.since = now()

    def take(self) -> bool:
        """One more: is it within the limit?"""
        if self.left <= 0:
            at = now()
            if at - self.since < 1:
                return False
            self.since, self.left = at, self.per_s
        self.left -= 1
        return True


class Journal:
    """One worker's. slot: the worker's; show_keys: are keys readable, or is there only their digest?"""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.show_keys = False
        self.recent: deque[Record] = deque(maxlen=KEPT)
        self.events: deque[Record] = deque(maxlen=KEPT)
        self.slow = Allowance(SLOW_PER_S)
        self.sampled = Allowance(SAMPLED_PER_S)

    def put(self, record: Record, slow: bool) -> None:
        """Keep a slow one; log either."""
        fields = {name: value for name, value in record.items() if name not in BOUND}
        if slow:
            self.recent.append(record)
            log.warning("request.slow", **fields)
        else:
            log.info("request.sampled", **fields)

    def note(self, at: float, level: str, event: str, fields: dict[str, object]) -> None:
        """Keep what the log says of servers and rooms (hyper_proxy.common.log.watch); `at` in seconds since 1970."""
        if event in OF_SERVERS or event.startswith(OF_ROOMS):
            texts = {name: str(value)[:LONGEST] for name, value in {"slot": self.slot, **fields}.items()}
            self.events.append({"at": at, "level": level, "event": event, "fields": texts})
