"""Marks that must be set: at once, and where a server could not be asked, again until it can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic

import gevent

from hyper_proxy.common import log
from hyper_proxy.tunnel.tier import Places

AGAIN_S = 0.5
ROUND = 1000  # keys that are marked in one go: a worker has other things to do
MAX_OWED = 100_000  # keys; beyond it those tried longest ago are given up, and that is logged


@dataclass(frozen=True, slots=True)
class Debt:
    """The marks of one key. until: when its copies have ended by themselves; places: those that lack the mark."""

    until: float
    places: Places


class Marks:
    """One tier's. mark: sets them, at all places where none are named, and returns those that it could not; longest_s:
    after it no copy is left anyway.
    """

    def __init__(self, mark: Callable[[Mapping[bytes, Places]], dict[bytes, Places]], longest_s: float) -> None:
        self.mark = mark
        self.longest_s = longest_s
        # By key, those tried longest ago first. It leaves when it is marked.
        self.owed: dict[bytes, Debt] = {}
        self.heir: Marks | None = None
        self.running = False

    def set(self, keys: Sequence[bytes]) -> None:
        """Mark these keys; what can't be marked now is owed."""
        self._owe(self.mark(dict.fromkeys(keys, ())))

    def owe(self, keys: Sequence[bytes]) -> None:
        """Mark them in a moment, and again until it succeeds."""
        self._owe(dict.fromkeys(keys, ()))

    def hand_over(self, heir: Marks) -> None:
        """The tier has a successor: it owes from now on what this one owes, or still will, wherever it has copies."""
        self.heir = heir
        debts, self.owed = self.owed, {}
        heir._add({key: Debt(debt.until, ()) for key, debt in debts.items()})

    def _owe(self, left: Mapping[bytes, Places]) -> None:
        until = monotonic() + self.longest_s
        self._add({key: Debt(until, places if self.heir is None else ()) for key, places in left.items()})

    def _add(self, debts: Mapping[bytes, Debt]) -> None:
        if self.heir is not None:
            self.heir._add(debts)
            return
        for key, debt in debts.items():
            before = self.owed.pop(key, None)
            everywhere = before is not None and not before.places
            self.owed[key] = Debt(debt.until, ()) if everywhere else debt
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
        failed = self.mark({key: debt.places for key, debt in due.items() if debt.until > now})
        for key, debt in due.items():
            if self.owed.get(key) is debt:  # else it was written again, or handed over, in the meantime
                del self.owed[key]
                if key in failed:
                    self.owed[key] = Debt(debt.until, failed[key])
        return not failed
