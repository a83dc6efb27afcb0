"""Whether one more client may come. One for the worker: its listeners share what it has of memory and descriptors."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from hyper_proxy.common import log
from hyper_proxy.common.descriptors import RESERVE
from hyper_proxy.common.memory import MEMORY

if TYPE_CHECKING:
    from hyper_proxy.front import Front

LOG_EVERY_S = 60.0  # a thousand clients that are refused for one reason are one line


class Admission:
    """pauses: how often accepting had to be interrupted."""

    def __init__(self) -> None:
        self.pauses = 0
        self.said: dict[tuple[str, str], float] = {}

    def refusal(self, front: Front, fd: int) -> str:
        """Why the client of this descriptor must go, in words for the log; empty: it may stay."""
        limit = front.snapshot.instance.limits.max_clients
        if len(front.clients) >= limit:
            return f"limits.max_clients is {limit} in each worker"
        if RESERVE.holds(fd):
            return "the descriptors left are kept for connections to servers"
        if MEMORY.is_short():
            return "memory is short"
        return ""

    def say(self, event: str, key: str, **fields: object) -> None:
        """Log a warning, about the same `key` once a minute."""
        now = monotonic()
        if now - self.said.get((event, key), -LOG_EVERY_S) >= LOG_EVERY_S:
            self.said[event, key] = now
            log.warning(event, **fields)
