"""Close the clients that are silent for longer than their instance allows: one sweep a second, nothing per request."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING

import gevent

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client
    from hyper_proxy.front import Front

SWEEP_S = 1.0


class Janitor:
    """Remembers of each client how many bytes it had sent, and since when that has not changed."""

    def __init__(self) -> None:
        self.seen: dict[Client, tuple[int, float]] = {}

    def run(self, fronts: dict[str, Front]) -> None:
        """The body of a greenlet that never ends."""
        while True:
            gevent.sleep(SWEEP_S)
            self.sweep(fronts.values(), monotonic())

    def sweep(self, fronts: Iterable[Front], now: float) -> None:
        """Look at all clients of instances that have an idle timeout."""
        seen: dict[Client, tuple[int, float]] = {}
        for front in fronts:
            limit = front.snapshot.instance.limits.idle_timeout_s
            if not limit:
                continue
            for client in front.clients:
                count, since = self.seen.get(client, (-1, now))
                silent = client.idle and count == client.bytes_in  # a request under way is no silence
                seen[client] = (count, since) if silent else (client.bytes_in, now)
                if not client.shared and now - seen[client][1] >= limit:
                    (client.hang_up if client.kept else client.leave)()  # the rest of a request is not waited for
        self.seen = seen
