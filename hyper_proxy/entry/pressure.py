"""What a worker does when it has more memory than it may: it takes in less, until that is over.

    new clients are refused, in the words of their protocol            (admission.py)
    large replies are dropped as they come, and an error said instead  (conn_pool/replies.py)
    batches are small, so that a client that reads slowly holds little
    clients in the middle of a large request are not read from, but for one; who sends nothing of it is let go
    what is free goes back to the system                               (common/memory.py)
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common.memory import MEMORY
from hyper_proxy.entry.stalled import Stalled
from hyper_proxy.protocol.session import limit_batches

if TYPE_CHECKING:
    from hyper_proxy.entry.admission import Admission
    from hyper_proxy.entry.client import Client
    from hyper_proxy.front import Front

LOOK_S = 0.1
HELD_LOOK_S = 0.02  # while clients are held: those that are gone meanwhile end one after the other
SMALL_BATCH_BYTES = 1 << 16
STALL_S = 1.0  # a client that sends nothing for so long gives way to the next
GIVE_UP_S = 10.0  # and after so long its connection is ended: new clients are refused for what it holds


class Pressure:
    """shortages: how often memory became short."""

    def __init__(self, fronts: Mapping[str, Front], admission: Admission) -> None:
        self.fronts = fronts
        self.admission = admission
        self.shortages = 0
        self.short = False
        self.held: set[Client] = set()
        self.stalled = Stalled(GIVE_UP_S)
        self.favoured: Client | None = None
        self.favoured_bytes = 0
        self.favoured_at = 0.0

    def run(self) -> None:
        """The body of a greenlet that never ends."""
        while True:
            gevent.sleep(HELD_LOOK_S if self.held else LOOK_S)
            self.look(monotonic())

    def look(self, now: float) -> None:
        """Begin, go on or end holding back."""
        short = MEMORY.is_short()
        if short != self.short:
            self.short = short
            self.shortages += short
            limit_batches(SMALL_BATCH_BYTES if short else 0)
        if not short:
            self._release()
            return
        self.admission.say("memory.short", "", used=MEMORY.used, limit=MEMORY.limit)
        self._hold(now)

    def _hold(self, now: float) -> None:
        """Let one client finish its large request, the one that lacks least, so that what it holds comes free."""
        large = [client for front in self.fronts.values() for client in front.clients if client.kept]
        for client in self.stalled.find(large, now):
            self.admission.say("client.stalled", "", client=client.address, kept=client.kept, seconds=GIVE_UP_S)
            client.hang_up()  # which reads from it again, to see the end
            large.remove(client)
        self.held.intersection_update(large)
        if not large:
            self.favoured = None
            return
        favoured = self.favoured
        if favoured not in large or self._stalls(favoured, now):
            others = [client for client in large if client is not favoured] or large
            favoured = min(others, key=lambda client: client.lacking)
            self.favoured_at = now
        self.favoured = favoured
        self.favoured_bytes = favoured.bytes_in
        for client in large:
            if client is not favoured:
                client.hold()
                self.held.add(client)
        favoured.release()
        self.held.discard(favoured)

    def _stalls(self, client: Client, now: float) -> bool:
        if client.bytes_in != self.favoured_bytes:
            self.favoured_at = now
        return now - self.favoured_at >= STALL_S

    def _release(self) -> None:
        for client in self.held:
            client.release()
        self.held.clear()
