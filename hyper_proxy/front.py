"""An instance in one worker: its configuration of the moment, its clients, its counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from hyper_proxy.config.model import Instance
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.protocol.redis.command import CLASSES
from hyper_proxy.stats.histogram import Histogram

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one request sees from its first byte to its last: replaced as a whole, never changed."""

    instance: Instance
    storage: Any
    placement: Placement | None


class FrontStats:
    """Counters of one instance in one worker."""

    def __init__(self) -> None:
        self.requests = [0] * len(CLASSES)
        self.latency = [Histogram() for _ in CLASSES]
        self.errors: Counter[str] = Counter()
        self.bytes_in = 0  # of clients that are gone; the others know their own
        self.bytes_out = 0
        self.accepted = 0
        self.refused = 0

    def note(self, klass: int, count: int, us: int) -> None:
        """`count` requests of this class were answered, `us` microseconds after they were read."""
        self.requests[klass] += count
        self.latency[klass].add(us, count)

    def error(self, kind: str) -> None:
        """A client was told of an error of this kind."""
        self.errors[kind] += 1


class Front:
    """`session` makes the protocol's session for a client; `snapshot` is what new requests see."""

    def __init__(self, session: Any, snapshot: Snapshot, slot: int) -> None:
        self.session = session
        self.slot = slot
        self.sequence = count(1)  # numbers the clients
        self.snapshot = snapshot
        self.stats = FrontStats()
        self.clients: set[Client] = set()
