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
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

import gevent

from hyper_proxy.common import parallel
from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import Answer, Marked
from hyper_proxy.storage.keyvalue import Change, Item, KeyValue, Put
from hyper_proxy.tunnel.coalesce import Coalesce
from hyper_proxy.tunnel.marks import Marks
from hyper_proxy.tunnel.tier import NOWHERE, Part, Tier

T = TypeVar("T")


class Levels(KeyValue):
    """tiers: the caches, from the top; last: what knows."""

    forwards = False

    def __init__(self, tiers: Sequence[Tier], last: KeyValue) -> None:
        self.tiers = list(tiers)
        self.last = last
        self.kind = last.kind
        self.keeps_versions = last.keeps_versions
        self.nodes = [*(node for tier in tiers for node in tier.nodes), *last.nodes]
        self.questions = [Coalesce(tier.pace.fill_s) for tier in tiers]
        self.marks = [Marks(tier.mark, tier.write_back.longest_s) for tier in tiers]
        self.fields = last.fields

    # ---- reading

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return self._read(0, keys)

    def _read(self, depth: int, keys: Sequence[bytes]) -> list[Item | None]:
        if depth == len(self.tiers):
            return self.last.read_many(keys)
        parts = self.tiers[depth].split(keys)
        found: list[Item | None] = [None] * len(keys)
        for part, items in zip(parts, parallel.each(lambda part: self._read_part(depth, part), parts), strict=True):
            for index, item in zip(part.indexes, items, strict=True):
                found[index] = item
        return found

    def _read_part(self, depth: int, part: Part) -> list[Item | None]:
        if part.shard == NOWHERE:
            return self._read(depth + 1, part.keys)
        try:
            answers: list[Answer] = self.tiers[depth].read(part)
        except BackendError:  # counted by its node; a cache that is not there has nothing
            return self._read(depth + 1, part.keys)
        return self._complete(depth, part, answers)

    def complete(self, part: Part, answers: list[Answer] | None) -> list[Item | None]:
        """The items of keys of one shard of the first level, which said `answers`, or nothing that one can use."""
        return self._read(1, part.keys) if answers is None else self._complete(0, part, answers)

    def _complete(self, depth: int, part: Part, answers: list[Answer]) -> list[Item | None]:
        tier = self.tiers[depth]
        items = [None if isinstance(answer, Marked) else answer for answer in answers]
        wanted = [at for at, item in enumerate(items) if item is None]
        if not wanted:
            return items

        def ask(keys: Sequence[bytes]) -> list[Item | None]:
            began = monotonic()
            below = self._read(depth + 1, keys)
            entries = [(key, item) for key, item in zip(keys, below, strict=True) if item is not None]
            if entries and monotonic() - began <= tier.pace.fill_s:
                tier.fill(part.shard, entries)
            return below

        marked = [isinstance(answers[at], Marked) for at in wanted]
        below = self.questions[depth].read([part.keys[at] for at in wanted], marked, ask)
        for at, item in zip(wanted, below, strict=True):
            items[at] = item
        return items

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return self.last.get_many(keys)

    def count(self) -> int:
        return self.last.count()

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        return self.last.scan(cursor, limit)

    # ---- writing

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        with self._marked(keys):
            return self.last.update(keys, change)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        with self._marked([key for key, _ in entries]):
            self.last.put_many(entries)

    # The storage itself may do these on several servers, where `update` needs all keys to be on one.

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        with self._marked([key for key, _ in entries]):
            return self.last.put_many_if_absent(entries)

    def delete_many(self, keys: Sequence[bytes]) -> int:
        with self._marked(keys):
            return self.last.delete_many(keys)

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        with self._marked(keys):
            return self.last.expire_many(keys, expires_at)

    def clear(self) -> None:
        self.last.clear()
        self._empty()
        gevent.sleep(max(tier.pace.settle_s for tier in self.tiers))
        self._empty()  # of what those have filled in who had begun to read before

    def _empty(self) -> None:
        parallel.each(lambda tier: tier.empty(), self.tiers)

    @contextmanager
    def _marked(self, keys: Sequence[bytes]) -> Iterator[None]:
        began = monotonic()
        self._mark(keys)
        try:
            yield
        except BackendError:
            for marks in self.marks:
                marks.owe(keys)  # once more in a moment, though the mark stands: the server may do it only then
            raise
        if monotonic() - began > min(tier.pace.slow_s for tier in self.tiers):
            self._mark(keys)

    def _mark(self, keys: Sequence[bytes]) -> None:
        parallel.each(lambda marks: marks.set(keys), self.marks)

    # ---- life

    @property
    def owed(self) -> int:
        """How many keys have still to be marked in caches that could not be asked."""
        return sum(len(marks.owed) for marks in self.marks)

    def release(self, successor: KeyValue | None) -> None:
        """Let go of what the successor has not taken over."""
        tiers = successor.tiers if isinstance(successor, Levels) else []
        for depth, tier in enumerate(self.tiers):
            heir = tiers[depth] if depth < len(tiers) else None
            tier.release(heir)
            if isinstance(successor, Levels) and heir is not None and heir.level.storage == tier.level.storage:
                self.marks[depth].hand_over(successor.marks[depth])
        below = successor.last if isinstance(successor, Levels) else successor
        if below is not self.last:
            self.last.release(below if type(below) is type(self.last) else None)
