"""Who holds memory for a request that does not come: a large one, of which nothing has arrived for a while."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hyper_proxy.common.sockio import unread

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client

LOOK_S = 1.0


class Stalled:
    """Looks at clients in the middle of a large request, those included that are not read from: what they have sent
    waits in the kernel then, and that it waits is a sign of life.
    """

    def __init__(self, after_s: float) -> None:
        self.after_s = after_s
        self.looked_at = 0.0
        self.seen: dict[Client, tuple[int, float]] = {}  # bytes that it had sent, and since when it is no more

    def find(self, clients: Iterable[Client], now: float) -> list[Client]:
        """Those of which nothing has come for `after_s`."""
        if now - self.looked_at < LOOK_S:
            return []
        self.looked_at = now
        seen: dict[Client, tuple[int, float]] = {}
        for client in clients:
            count, since = self.seen.get(client, (-1, now))
            silent = count == client.bytes_in and not unread(client.fd)
            seen[client] = (client.bytes_in, since if silent else now)
        self.seen = seen
        return [client for client, (_, since) in seen.items() if now - since >= self.after_s]
