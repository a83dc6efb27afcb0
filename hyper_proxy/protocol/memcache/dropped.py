"""Where the answers to noreply requests end: nobody is told, but failures are counted."""

from __future__ import annotations

from typing import Any

from hyper_proxy.common.gather import Gather
from hyper_proxy.storage.memcache_replies import ERRORS


class Dropped(Gather):
    """A gather that nobody waits on."""

    def __init__(self, stats: Any) -> None:
        super().__init__()
        self.stats = stats

    def deliver(self, position: int, reply: object) -> None:
        """The server has answered; an error that nobody will see is counted as `noreply`."""
        if not isinstance(reply, bytes) or reply.startswith(ERRORS):
            self.stats.error("noreply")

    def fail(self, position: int, error: Any) -> None:
        """The server has failed."""
        self.stats.error(error.kind)
