"""An instance in one worker: its configuration of the moment, its clients, its counters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from hyper_proxy.common.present import Present
from hyper_proxy.config.model import FORWARDED, Instance
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.stats.classes import CLASSES
from hyper_proxy.stats.instance import InstanceStats
from hyper_proxy.stats.watch import Watch

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client
    from hyper_proxy.protocol.table import Protocol


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one request sees from its first byte to its last: replaced as a whole, never changed."""

    instance: Instance
    storage: Any
    placement: Placement

    def is_like(self, other: Snapshot) -> bool:
        """Can a client's session go on with the other one: the same protocol, on the same kind of storage if it knows
        one of them closer than as keys and values?"""
        protocol = self.instance.protocol
        if protocol != other.instance.protocol:
            return False
        return protocol not in FORWARDED or type(self.storage) is type(other.storage)


class Front(Present):
    """`protocol` makes the session of a client; `snapshot` is what new requests see; `watch` looks at some of them."""

    snapshot: Snapshot

    def __init__(self, protocol: Protocol, snapshot: Snapshot, slot: int, watch: Watch) -> None:
        super().__init__(snapshot)
        self.protocol = protocol
        self.slot = slot
        self.gone = False  # removed from the configuration
        self.sequence = count(1)  # numbers the clients
        self.stats = InstanceStats(CLASSES)
        self.watch = watch
        self.clients: set[Client] = set()

    def remove(self) -> None:
        """The instance is no longer configured: who is connected, or just being accepted, ends."""
        self.gone = True
        self.hang_up()

    def hang_up(self) -> None:
        """End the connections of all clients now."""
        for client in list(self.clients):
            client.hang_up()
