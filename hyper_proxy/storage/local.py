"""Copies in the worker's own memory, above any key space, which no reader of the machine can find to be old.

    read     a copy whose cell still has the token that it was made with; else below, and a copy is made
    write    the cells of its keys get a new token, the write goes below, the cells get another new token

Why what was read is never older than a write that had been answered before (common/cells.py says what a token is):

- A copy is made with the token that was read BEFORE its value was read below, and only if the cell still has it after.
- A write changes the cell before it goes below and after it came back, before it is answered.
- So a value that was read before the write was done below was read with a token from before the second change, or was
  found to have an older one and not kept. Whoever reads after the write was answered finds another token in the cell
  than that of any such copy: he goes below, where the write has been done.
- While the write is under way, the token says so, and nothing is kept: else one worker might serve the old value still,
  when another has shown the new one already.

A write of which nobody knows whether it was done or will be (a server that did not answer in time) changes the cells
again and again for some seconds. What other machines write, or other programs, is not seen here: copies stand for
`ttl` at most.

Memory is bounded: when there is no room, copies are looked at in the order in which they came; one that was read since
the last look stays and goes to the end, another one goes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import gevent

from hyper_proxy.common.cells import CELLS
from hyper_proxy.common.errors import ClientError
from hyper_proxy.common.memory import MEMORY
from hyper_proxy.config.model import WriteBack
from hyper_proxy.storage.keyvalue import LEVELED, Change, Item, KeyValue, Mode, Outcome, Partial, Put

T = TypeVar("T")

COPY_BYTES = 400  # what a copy takes beside key and value
LARGEST = 8  # a copy takes at most this part of the memory
UNKNOWN_S = 1.0  # a value whose time of expiry is not known, for it came from a cache, stays no longer
AGAIN_S = (1.0, 2.0, 4.0, 8.0)  # after a write of which nobody knows whether it was done


class Copy:
    """A value, or that there is none. until: unix seconds; token: of its cell; used: read since the last look?"""

    __slots__ = ("cell", "item", "size", "token", "until", "used")

    def __init__(self, item: Item | None, cell: int, token: int, until: float, size: int) -> None:
        self.item = item
        self.cell = cell
        self.token = token
        self.until = until
        self.size = size
        self.used = False


class Copies:
    """One worker's, of one instance. hits and misses count keys."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        self._copies: dict[bytes, Copy] = {}

    def __len__(self) -> int:
        return len(self._copies)

    def get(self, key: bytes, now: float) -> Copy | None:
        """The copy, if it is good."""
        copy = self._copies.get(key)
        if copy is not None:
            if CELLS.words[copy.cell] == copy.token and now < copy.until:
                copy.used = True
                self.hits += 1
                return copy
            self._drop(key)
        self.misses += 1
        return None

    def put(self, key: bytes, copy: Copy) -> None:
        """Keep it, and let others go for it."""
        if copy.size > self.max_bytes // LARGEST:
            return
        if key in self._copies:
            self._drop(key)
        self._copies[key] = copy
        self.bytes += copy.size
        while self.bytes > self.max_bytes:
            oldest = next(iter(self._copies))
            copy = self._copies[oldest]
            self._drop(oldest)
            if copy.used:
                copy.used = False
                self._copies[oldest] = copy
                self.bytes += copy.size

    def _drop(self, key: bytes) -> None:
        self.bytes -= self._copies.pop(key).size


class Local(KeyValue):
    """below: what knows. exact: does it tell when each item ends? before: the one of the configuration before."""

    forwards = False
    place = LEVELED

    def __init__(
        self, below: KeyValue, max_bytes: int, write_back: WriteBack, exact: bool, before: Local | None = None
    ) -> None:
        self.below = below
        self.kind = below.kind
        self.nodes = below.nodes
        self.fields = below.fields
        self.keeps_versions = below.keeps_versions
        self.write_back = write_back
        self.exact = exact
        same = before is not None and (before.below, before.write_back) == (below, write_back)
        self.copies: Copies = before.copies if before is not None and same else Copies(max_bytes)
        self.copies.max_bytes = max_bytes
        if before is not None and not same:  # the counts go on
            self.copies.hits, self.copies.misses = before.copies.hits, before.copies.misses

    @property
    def backlog(self) -> Any:
        """What waits to be written further below, or None."""
        return getattr(self.below, "backlog", None)

    # ---- reading

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        now = time.time()
        copies = [self.copies.get(key, now) for key in keys]
        missing = [key for key, copy in zip(keys, copies, strict=True) if copy is None]
        if not missing:
            return [copy.item for copy in copies if copy is not None]
        try:
            found = dict(zip(missing, self._fetch(missing), strict=True))
        except Partial as partial:
            kept = {key: copy.item for key, copy in zip(keys, copies, strict=True) if copy is not None}
            raise Partial({**kept, **partial.found}) from None
        return [found[key] if copy is None else copy.item for key, copy in zip(keys, copies, strict=True)]

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        """Several keys are of one moment, so they are asked below."""
        return self.read_many(keys) if self.exact and len(keys) == 1 else self.below.get_many(keys)

    def _fetch(self, keys: Sequence[bytes]) -> list[Item | None]:
        """From below; what may be kept is kept."""
        noted = [(cell, CELLS.words[cell]) for cell in map(CELLS.of, keys)]
        items = (self.below.get_many if self.exact else self.below.read_many)(keys)
        for key, item, (cell, token) in zip(keys, items, noted, strict=True):
            if CELLS.words[cell] == token and not CELLS.is_busy(token):
                seconds = self._seconds(item)
                if seconds > 0 and not MEMORY.is_short():
                    size = COPY_BYTES + len(key) + (len(item.value) if item else 0)
                    self.copies.put(key, Copy(item, cell, token, time.time() + seconds, size))
        return items

    def _seconds(self, item: Item | None) -> float:
        """How long a copy stays; with jitter, so that copies made together do not end together."""
        ttl = self.write_back.ttl if item else self.write_back.negative_ttl
        seconds = ttl * random.uniform(1 - self.write_back.jitter, 1 + self.write_back.jitter)
        if not self.exact:
            seconds = min(seconds, UNKNOWN_S)
        if item is not None and item.expires_at is not None:
            seconds = min(seconds, item.expires_at - time.time())
        return seconds

    def count(self) -> int:
        return self.below.count()

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        return self.below.scan(cursor, limit)

    # ---- writing

    @contextmanager
    def _written(self, keys: Iterable[bytes]) -> Iterator[None]:
        begun = {cell: CELLS.begin(cell) for cell in map(CELLS.of, keys)}
        unsure = True
        try:
            yield
            unsure = False
        except ClientError:  # nothing was done
            unsure = False
            raise
        finally:
            for cell, token in begun.items():
                CELLS.end(cell, token)
            if unsure:
                for seconds in (0.0, *AGAIN_S):
                    gevent.spawn_later(seconds, _disturb, list(begun))

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        with self._written(keys):
            return self.below.update(keys, change)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        with self._written(key for key, _ in entries):
            self.below.put_many(entries)

    def clear(self) -> None:
        CELLS.disturb_all()
        try:
            self.below.clear()
        finally:
            CELLS.disturb_all()

    # The storage below may do these in a way of its own.

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        with self._written(key for key, _ in entries):
            return self.below.put_many_if_absent(entries)

    def delete_many(self, keys: Sequence[bytes]) -> int:
        with self._written(keys):
            return self.below.delete_many(keys)

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        with self._written(keys):
            return self.below.expire_many(keys, expires_at)

    def store(self, key: bytes, value: bytes, flags: int = 0, expires_at: float | None = None, mode: Mode = Mode.SET,
              version: int = 0) -> Outcome:  # fmt: skip
        with self._written([key]):
            return self.below.store(key, value, flags, expires_at, mode, version)

    def incr_signed(self, key: bytes, delta: int) -> int:
        with self._written([key]):
            return self.below.incr_signed(key, delta)

    def incr_unsigned(self, key: bytes, delta: int) -> int | None:
        with self._written([key]):
            return self.below.incr_unsigned(key, delta)

    def persist(self, key: bytes) -> bool:
        with self._written([key]):
            return self.below.persist(key)


def _disturb(cells: Sequence[int]) -> None:
    for cell in cells:
        CELLS.disturb(cell)
