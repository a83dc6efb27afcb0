"""Marks that must be set: at once, and where a server could not be asked, again until it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

import gevent

from hyper_proxy.common import log

AGAIN_S = 0.5
MAX_OWED = 100_000  # keys; beyond it the oldest are given up, and that is logged


class Marks:
    """One tier's. mark: sets them and returns those that it could not; longest_s: after it no copy is left anyway."""

    def __init__(self, mark: Callable[[Sequence[bytes]], list[bytes]], longest_s: float) -> None:
        self.mark = mark
        self.longest_s = longest_s
        self.owed: dict[bytes, float] = {}  # key -> when its copies have ended by themselves, the oldest first
        self.running = False

    def set(self, keys: Sequence[bytes]) -> None:
        """Mark these keys; what can't be marked now is owed."""
        self.owe(self.mark(keys))

    def owe(self, keys: Sequence[bytes]) -> None:
        """Mark them in a moment, and again until it succeeds."""
        until = monotonic() + self.longest_s
        for key in keys:
            self.owed.pop(key, None)
            self.owed[key] = until
        lost = len(self.owed) - MAX_OWED
        for key in list(self.owed)[: max(lost, 0)]:
            del self.owed[key]
        if lost > 0:
            log.error("write_back.marks_given_up", keys=lost)
        if self.owed and not self.running:
            self.running = True
            gevent.spawn(self._pay)

    def _pay(self) -> None:
        try:
            while self.owed:
                gevent.sleep(AGAIN_S)
                now = monotonic()
                keys = [key for key, until in self.owed.items() if until > now]
                untils = self.owed
                self.owed = {}
                for key in self.mark(keys):
                    self.owed.setdefault(key, untils[key])
        finally:
            self.running = False
