"""Marks that must be set: at once, and where a server could not be asked, again until it can.

What is owed to one server waits for no other one: one that is away for long may be owed a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from time import monotonic

import gevent

from hyper_proxy.common import log
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.stats.slowlog import Allowance
from hyper_proxy.tunnel.tier import Tier

AGAIN_S = 0.5
ROUND = 1000  # keys that are marked in one go: a worker has other things to do
MAX_OWED = 100_000  # marks; beyond it whoever lacks the most is not told of those tried longest ago, and that is logged

Debts = dict[bytes, float]
"""The keys whose marks one place lacks, those tried longest ago first; with the time when its copies have ended."""


class Marks:
    """One tier's; longest_s: after it no copy is left anyway."""

    def __init__(self, tier: Tier, longest_s: float) -> None:
        self.tier = tier
        self.longest_s = longest_s
        self.owed: dict[Target, Debts] = {}  # by place; one that lacks nothing is not in it
        self.heir: Marks | None = None
        self.paying: set[Target] = set()
        self.untold = 0
        self.allowance = Allowance(1)  # lines in a second

    @property
    def count(self) -> int:
        """How many marks are owed."""
        return sum(map(len, self.owed.values()))

    def set(self, keys: Sequence[bytes]) -> None:
        """Mark these keys; what can't be marked now is owed."""
        failed = self.tier.mark([(key, place) for key in dict.fromkeys(keys) for place in self.tier.places(key)])
        if failed:
            until = monotonic() + self.longest_s
            self._owe([(key, place, until) for key, place in failed])

    def owe(self, keys: Iterable[bytes]) -> None:
        """Mark them in a moment, and again until it succeeds."""
        self._owe_everywhere(dict.fromkeys(keys, monotonic() + self.longest_s))

    def hand_over(self, heir: Marks) -> None:
        """The tier has a successor: it owes from now on what this one owes, or still will, wherever it has copies."""
        self.heir = heir
        heir.untold += self.untold
        owed, self.owed = self.owed, {}
        for place, debts in owed.items():
            self._owe((key, place, until) for key, until in debts.items())

    def _owe_everywhere(self, debts: Debts) -> None:
        self._owe((key, place, until) for key, until in debts.items() for place in self.tier.places(key))

    def _owe(self, lacking: Iterable[tuple[bytes, Target, float]]) -> None:
        if self.heir is not None:
            heir = self.heir
            heir._owe((key, at, until) for key, place, until in lacking for at in self._now_lacking(heir, key, place))
            return
        for key, place, until in lacking:
            debts = self.owed.setdefault(place, {})
            debts[key] = max(until, debts.pop(key, until))
            if place not in self.paying:
                self.paying.add(place)
                gevent.spawn(self._pay, place)
        self._give_up(self.count - MAX_OWED)

    def _now_lacking(self, heir: Marks, key: bytes, place: Target) -> list[Target]:
        """Where the heir owes what this one owed at a place: there, unless the key has copies at others now."""
        there = heir.tier.places(key)
        return [place] if there == self.tier.places(key) else there

    def _give_up(self, lost: int) -> None:
        while lost > 0:
            most = max(self.owed.values(), key=len)
            gone = list(islice(most, lost))
            for key in gone:
                del most[key]
            lost -= len(gone)
            self.untold += len(gone)
        if self.untold and self.allowance.take():
            log.error("write_back.marks_given_up", keys=self.untold)
            self.untold = 0

    def _pay(self, place: Target) -> None:
        pause = AGAIN_S
        try:
            while self.owed.get(place):
                gevent.sleep(pause)
                pause = 0 if self._round(place) else AGAIN_S
                self._give_up(0)
            self.owed.pop(place, None)
        finally:
            self.paying.discard(place)

    def _round(self, place: Target) -> bool:
        """Try some; could all of them be marked?"""
        now = monotonic()
        due = dict(islice(self.owed.get(place, {}).items(), ROUND))
        here = [key for key in due if place in self.tier.places(key)]
        failed = {key for key, _ in self.tier.mark([(key, place) for key in here if due[key] > now])}
        debts = self.owed.get(place, {})
        for key, until in due.items():
            if debts.get(key) is until:  # else it was written again, or handed over, in the meantime
                del debts[key]
                if key in failed:
                    debts[key] = until
        if len(here) < len(due):  # the servers have found that others have the key now
            self._owe_everywhere({key: until for key, until in due.items() if key not in here})
        return not failed
