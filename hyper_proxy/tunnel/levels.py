# cython: language_level=3, annotation_typing=False
"""N levels as one key space: caches above the storage that knows, which has the last word.

    read    asks the first level, part by part; a part's misses go to the next level as soon as that part has answered,
            by the same code one level deeper; what is found below is added above, off the reply's path
    write   marks the key in every cache, then writes below

Why a reader can't bring back what a writer has replaced: it adds only where there is nothing, and soon after it
began to read below (Pace.fill_s). A mark stands longer, so whoever read the old value finds it in the way; who finds
it gone has begun after the write. A write that is slow, or of which nobody knows whether it was done, marks a second
time. Where a cache's server can't be marked, the key is marked again and again until it can or its copies have ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import gevent

from hyper_proxy.common import parallel
from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import ABSENT, Answer, Marked
from hyper_proxy.storage.keyvalue import LEVELED, Change, Item, KeyValue, Put
from hyper_proxy.tunnel.behind import Backlog, Behind
from hyper_proxy.tunnel.below import Below
from hyper_proxy.tunnel.gate import Gate
from hyper_proxy.tunnel.outcome import Failed, Told, attempt, whole
from hyper_proxy.tunnel.succession import successors
from hyper_proxy.tunnel.tier import NOWHERE, Part, Tier
from hyper_proxy.tunnel.writing import Seen, Writing, expired_values, put_values

T = TypeVar("T")


class Servers:
    """Those of all levels; some levels find others while they run."""

    def __init__(self, levels: Sequence[Any]) -> None:
        self.levels = levels

    def __iter__(self) -> Iterator[Any]:
        return (node for nodes in self.levels for node in nodes)

    def __len__(self) -> int:
        return sum(len(nodes) for nodes in self.levels)


class Levels(KeyValue):
    """tiers: the caches, from the top; last: what knows; gate: through which reads of it must pass."""

    forwards = False
    place = LEVELED

    def __init__(self, tiers: Sequence[Tier], last: KeyValue, gate: Gate) -> None:
        self.tiers = list(tiers)
        self.last = last
        self.kind = last.kind
        self.keeps_versions = last.keeps_versions
        self.fields = last.fields
        self.nodes = Servers([*(tier.nodes for tier in tiers), last.nodes])
        self.gate = gate
        self.crowds: dict[tuple[bytes, bytes], Any] = {}  # of those who miss a key at the same moment (descent.py)
        self.below = [Below(tier, depth, partial(self._read, depth + 1)) for depth, tier in enumerate(tiers)]
        self.writing = Writing(tiers, last, self._read)
        self.marks = self.writing.marks

    # ---- reading

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return whole(keys, self._read(0, keys))

    def _read(self, depth: int, keys: Sequence[bytes]) -> list[Told]:
        if depth == len(self.tiers):
            return attempt(self._read_last, keys)
        parts = self.tiers[depth].split(keys)
        found: list[Told] = [None] * len(keys)
        for part, items in zip(parts, parallel.each(lambda part: self._read_part(depth, part), parts), strict=True):
            for index, item in zip(part.indexes, items, strict=True):
                found[index] = item
        return found

    def _read_last(self, keys: Sequence[bytes]) -> list[Item | None]:
        with self.gate:
            return self.last.read_many(keys)

    def _read_part(self, depth: int, part: Part) -> list[Told]:
        if part.shard == NOWHERE:  # which is no miss: the level can't have such a key
            return self._read(depth + 1, part.keys)
        try:
            answers: list[Answer] = self.tiers[depth].read(part)
        except BackendError as error:
            return self._pass_by(depth, part, error)
        return self._complete(depth, part, answers)

    def _pass_by(self, depth: int, part: Part, error: BackendError) -> list[Told]:
        """A server of a level has failed, which its node has counted. A cache that is not there has nothing."""
        if self.tiers[depth].level.on_error == "fail":
            return [Failed(error)] * len(part.keys)
        self.tiers[depth].counts.level_skips += len(part.keys)
        return self._read(depth + 1, part.keys)

    def complete(self, part: Part, answers: list[Answer] | BackendError) -> list[Item | None]:
        """The items of keys of one shard of the first level, which said `answers`, or failed. Raises BackendError."""
        if isinstance(answers, BackendError):
            return whole(part.keys, self._pass_by(0, part, answers))
        return whole(part.keys, self._complete(0, part, answers))

    def _complete(self, depth: int, part: Part, answers: list[Answer]) -> list[Told]:
        items: list[Told] = [answer if isinstance(answer, Item) else None for answer in answers]
        tier = self.tiers[depth]
        if tier.write_back.negative_ttl:
            tier.counts.negative_hits += answers.count(ABSENT)
        misses = tier.level.on_miss == "next"
        wanted = [at for at, answer in enumerate(answers) if isinstance(answer, Marked) or (misses and answer is None)]
        if not wanted:
            return items
        tier.counts.level_misses += len(wanted)
        marked = [isinstance(answers[at], Marked) for at in wanted]
        below = self.below[depth].read(part.shard, [part.keys[at] for at in wanted], marked)
        for at, item in zip(wanted, below, strict=True):
            items[at] = item
        return items

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return self.last.get_many(keys)

    def count(self) -> int:
        return self.last.count()

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        return self.last.scan(cursor, limit)

    def watch(self, hot: Sequence[bytes]) -> None:
        """These keys are asked for very often just now."""
        for below in self.below:
            below.early.watch(hot)

    # ---- writing

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        with self.writing.of(keys) as values:
            if not self.writing.through:
                return self.last.update(keys, change)
            seen = Seen(keys, change)
            told: tuple[T, tuple[int, ...]] = self.last.update(keys, seen)
            values.update(seen.values)
            return told

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        with self.writing.of([key for key, _ in entries]) as values:
            self.last.put_many(entries)
            values.update(put_values(entries))

    # The storage itself may do these on several servers, where `update` needs all keys to be on one.

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        with self.writing.of([key for key, _ in entries]) as values:
            stored = self.last.put_many_if_absent(entries)
            if stored:
                values.update(put_values(entries))
            return stored

    def delete_many(self, keys: Sequence[bytes]) -> int:
        with self.writing.of(keys):
            return self.last.delete_many(keys)

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        with self.writing.of(keys) as values:
            before = self.last.expire_many(keys, expires_at)
            values.update(expired_values(keys, before, expires_at))
            return before

    def clear(self) -> None:
        self.last.clear()
        self._empty()
        gevent.sleep(max(tier.pace.settle_s for tier in self.tiers))
        self._empty()  # of what those have filled in who had begun to read before

    def _empty(self) -> None:
        parallel.each(lambda tier: tier.empty(), self.tiers)

    # ---- life

    @property
    def owed(self) -> int:
        """How many marks have still to be set in caches that could not be asked, or to be told of as given up."""
        return sum(marks.count + marks.untold for marks in self.marks)

    @property
    def backlog(self) -> Backlog | None:
        """What was answered and waits to be written below."""
        return self.last.backlog if isinstance(self.last, Behind) else None

    def follow(self, before: object) -> None:
        """A reload puts these into force, in the place of `before`."""
        tiers = before.tiers if isinstance(before, Levels) else []
        now = successors([tier.level for tier in tiers], [tier.level for tier in self.tiers])
        came_from = {new: tiers[old] for old, new in now.items()}
        for depth, tier in enumerate(self.tiers):
            tier.follow(came_from.get(depth))

    def release(self, successor: KeyValue | None) -> None:
        """Let go of what the successor has not taken over."""
        heirs = dict(enumerate(successor.tiers)) if isinstance(successor, Levels) else {}
        now = successors([tier.level for tier in self.tiers], [tier.level for tier in heirs.values()])
        for depth, tier in enumerate(self.tiers):
            tier.release(heirs[now[depth]] if depth in now else None)
            if isinstance(successor, Levels) and depth in now:
                self.marks[depth].hand_over(successor.marks[now[depth]])
        below = successor.last if isinstance(successor, Levels) else successor
        mine = self.last.below if isinstance(self.last, Behind) else self.last
        heir_below = below.below if isinstance(below, Behind) else below

        def let_go() -> None:
            if heir_below is not mine:
                mine.release(heir_below if type(heir_below) is type(mine) else None)

        if isinstance(self.last, Behind):
            self.last.pass_on(below, let_go)
        else:
            let_go()
