"""An instance in one worker: its configuration of the moment, its clients, its counters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from hyper_proxy.config.model import Instance
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.protocol.redis.command import CLASSES
from hyper_proxy.stats.instance import InstanceStats

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one request sees from its first byte to its last: replaced as a whole, never changed."""

    instance: Instance
    storage: Any
    placement: Placement | None


class Front:
    """`session` makes the protocol's session for a client; `snapshot` is what new requests see."""

    def __init__(self, session: Any, snapshot: Snapshot, slot: int) -> None:
        self.session = session
        self.slot = slot
        self.sequence = count(1)  # numbers the clients
        self.snapshot = snapshot
        self.stats = InstanceStats(CLASSES)
        self.clients: set[Client] = set()
