"""Marks that must be set: at once, and where a server could not be asked, again until it can.

What is owed to one server waits for no other one: one that is away for long may be owed a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from time import monotonic

import gevent

from hyper_proxy.common import faults, log
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.tunnel.tier import Tier

AGAIN_S = 0.5
ROUND = 1000  # keys that are marked in one go: a worker has other things to do
MAX_OWED = 100_000  # marks; beyond it whoever lacks the most is not told of those tried longest ago, and that is logged
TELL_S = 1.0  # what is given up in that time is one line of the log

Debts = dict[bytes, float]
"""The keys whose marks one place lacks, those tried longest ago first; with the time when its copies have ended."""
Places = list[tuple[bytes, Target]]
"""Of each key a place that must have a mark."""
Lacking = Iterable[tuple[bytes, Target, float]]
"""Key, place and that time."""


class Marks:
    """One tier's; longest_s: after it no copy is left anyway, unless it is older than this configuration. above: of the
    tiers that may have copied what this one had while a mark was owed."""

    def __init__(self, tier: Tier, longest_s: float, above: Sequence[Marks] = ()) -> None:
        self.tier = tier
        self.longest_s = longest_s
        self.above = list(above)
        self.older_until = 0.0  # when the copies have ended that were made under a configuration before
        self.owed: dict[Target, Debts] = {}  # by place; one that lacks nothing is not in it
        self.trying: dict[Target, Debts] = {}  # what is being paid just now
        self.heir: Marks | None = None
        self.paying: set[Target] = set()
        self.untold = 0  # marks that were given up and not logged yet

    @property
    def count(self) -> int:
        """How many marks are owed."""
        return self._waiting + sum(map(len, self.trying.values()))

    @property
    def _waiting(self) -> int:
        return sum(map(len, self.owed.values()))

    @property
    def copies_end_at(self) -> float:
        """After that time none of the copies of now is left."""
        return max(monotonic() + self.longest_s, self.older_until)

    def set(self, keys: Iterable[bytes]) -> Places:
        """Mark these keys. Returns the marks that stand; the others are owed."""
        return self._set(self.all_of(keys))

    def all_of(self, keys: Iterable[bytes]) -> Places:
        """The marks that these keys must have."""
        return [(key, place) for key in dict.fromkeys(keys) for place in self.tier.places(key)]

    def renew(self, standing: Places, marked_at: float) -> None:
        """The write is done. Mark again where a server may have lost the mark: it was started again since."""
        lost = [(key, place) for key, place in standing if not self.tier.has_kept(place, marked_at)]
        if lost:
            self._set(lost)

    def _set(self, wanted: Places) -> Places:
        failed = self.tier.mark(wanted)
        if not failed:
            return wanted
        until = self.copies_end_at
        self._owe([(key, place, until) for key, place in failed])
        lacking = set(failed)
        return [one for one in wanted if one not in lacking]

    def owe(self, keys: Iterable[bytes]) -> None:
        """Mark them in a moment, and again until it succeeds."""
        until = self.copies_end_at
        self._owe([(key, place, until) for key, place in self.all_of(keys)])

    def hand_over(self, heir: Marks) -> None:
        """The tier has a successor: it owes from now on what this one owes, or still will."""
        self.heir = heir
        heir.older_until = max(heir.older_until, self.copies_end_at)
        owed, self.owed = self.owed, {}
        for place, debts in owed.items():
            heir._owe([(key, place, until) for key, until in debts.items()])

    def _owe(self, lacking: Lacking) -> None:
        if self.heir is not None:
            self.heir._owe(lacking)
            return
        for key, place, until in lacking:
            debts = self.owed.setdefault(place, {})
            debts[key] = max(until, debts.pop(key, until))
            if place not in self.paying:
                self.paying.add(place)
                gevent.spawn(self._pay, place)
        self._give_up(self._waiting - MAX_OWED)

    def _give_up(self, lost: int) -> None:
        while lost > 0:
            most = max(self.owed.values(), key=len)
            gone = list(islice(most, lost))
            for key in gone:
                del most[key]
            lost -= len(gone)
            if not self.untold:
                gevent.spawn_later(TELL_S, self._tell)
            self.untold += len(gone)

    def _tell(self) -> None:
        of = self.tier
        log.error("write_back.marks_given_up", instance=of.instance, storage=of.level.storage, keys=self.untold)
        self.untold = 0

    def _pay(self, place: Target) -> None:
        most, pause = ROUND, AGAIN_S
        while self.owed.get(place):
            gevent.sleep(pause)
            tried = min(most, len(self.owed.get(place, ())))
            try:
                pause = 0 if self._round(place, most) else AGAIN_S
                most = ROUND
            except Exception:  # noqa: BLE001  what is owed is paid all the same: a plug-in may fail at one of the keys
                faults.show(self)
                most, pause = max(tried // 2, 1), AGAIN_S  # so that it is alone at last
        self.owed.pop(place, None)
        self.paying.discard(place)

    def _round(self, place: Target, most: int) -> bool:
        """Try some; could all of them be marked?"""
        debts = self.owed.get(place, {})
        due = self.trying[place] = {key: debts.pop(key) for key in list(islice(debts, most))}
        lacking: Lacking = [(key, place, until) for key, until in due.items()]
        try:
            lacking = self._try(place, due)
        finally:
            del self.trying[place]
            self._owe(lacking)
        return place not in [at for _, at, _ in lacking]

    def _try(self, place: Target, due: Debts) -> Lacking:
        """Returns what is owed then."""
        now = monotonic()
        at = {key: self.tier.places(key) for key, until in due.items() if until > now}
        here = [(key, place) for key, places in at.items() if place in places]
        lacking = [(key, place, due[key]) for key, _ in self.tier.mark(here)]
        for key in at.keys() - dict(here).keys():
            lacking += [(key, one, due[key]) for one in _instead(place, at[key])]
        over = due.keys() - {key for key, _, _ in lacking}
        for marks in reversed(self.above):
            marks.set(over)
        return lacking


def _instead(place: Target, there: list[Target]) -> list[Target]:
    """Where to mark what a place lacked that a key has no more, since a reload, or since the servers have found so: at
    the same server under other settings, else at all that have the key."""
    return [one for one in there if one.home.label == place.home.label] or there
