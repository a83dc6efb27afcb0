"""Marks that must be set: at once, and where a server could not be asked, again until it can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from time import monotonic

import gevent

from hyper_proxy.common import log

AGAIN_S = 0.5
ROUND = 1000  # keys that are marked in one go: a worker has other things to do
MAX_OWED = 100_000  # keys; beyond it those tried longest ago are given up, and that is logged


class Marks:
    """One tier's. mark: sets them and returns those that it could not; longest_s: after it no copy is left anyway."""

    def __init__(self, mark: Callable[[Sequence[bytes]], list[bytes]], longest_s: float) -> None:
        self.mark = mark
        self.longest_s = longest_s
        # Key -> when its copies have ended by themselves; those tried longest ago first. It leaves when it is marked.
        self.owed: dict[bytes, float] = {}
        self.heir: Marks | None = None
        self.running = False

    def set(self, keys: Sequence[bytes]) -> None:
        """Mark these keys; what can't be marked now is owed."""
        self.owe(self.mark(keys))

    def owe(self, keys: Sequence[bytes]) -> None:
        """Mark them in a moment, and again until it succeeds."""
        until = monotonic() + self.longest_s
        self._add(dict.fromkeys(keys, until))

    def hand_over(self, heir: Marks) -> None:
        """The tier has a successor: it owes from now on what this one owes, or still will."""
        self.heir = heir
        debts, self.owed = self.owed, {}
        heir._add(debts)

    def _add(self, debts: Mapping[bytes, float]) -> None:
        if self.heir is not None:
            self.heir._add(debts)
            return
        for key, until in debts.items():
            self.owed.pop(key, None)
            self.owed[key] = until
        lost = len(self.owed) - MAX_OWED
        if lost > 0:
            for key in list(islice(self.owed, lost)):
                del self.owed[key]
            log.error("write_back.marks_given_up", keys=lost)
        if self.owed and not self.running:
            self.running = True
            gevent.spawn(self._pay)

    def _pay(self) -> None:
        try:
            pause = AGAIN_S
            while self.owed:
                gevent.sleep(pause)
                pause = 0 if self._round() else AGAIN_S
        finally:
            self.running = False

    def _round(self) -> bool:
        """Try some; could all of them be marked?"""
        now = monotonic()
        due = dict(islice(self.owed.items(), ROUND))
        failed = set(self.mark([key for key, until in due.items() if until > now]))
        for key, until in due.items():
            if self.owed.get(key) == until:  # else it was written again, or handed over, in the meantime
                del self.owed[key]
                if key in failed:
                    self.owed[key] = until
        return not failed
