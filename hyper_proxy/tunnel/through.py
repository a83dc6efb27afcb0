"""Writing through a level: a mark first, as for every write; when the levels below have the new value, it takes the
place of the mark, if that is still the writer's own.

Why no older value can get there: each writer's mark bears a sign of his own, and whoever finds another mark when he
sets his may share the key with a writer who is busy, so he does not replace it. Two writers of one key at the same time
leave a mark, in whatever order the levels below have taken their values. A value that is put there stays as long as a
mark would, or it is not put there: so long it stands in the way of readers who began before the write.

The last mark of such a meeting is replaced a little later by what is then read below. Whoever had marked before it is
done by then, or slow, and a slow writer marks again; whoever came after it has put his own mark in its place.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeVar

import gevent

from hyper_proxy.common import parallel
from hyper_proxy.stats.classes import IDEMPOTENT
from hyper_proxy.storage.cache import MARK
from hyper_proxy.storage.claims import CLAIMS
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.tunnel.marks import Marks
from hyper_proxy.tunnel.outcome import Told
from hyper_proxy.tunnel.tier import NOWHERE, Part, Tier

T = TypeVar("T")

MAX_LATER = 10_000  # marks that wait to be replaced; beyond it they end by themselves
SIGN_BYTES = 8


@dataclass(slots=True)
class Claim:
    """The marks of one write in one level. `mine`: keys whose mark may be replaced at once; `shared`: those where
    another mark stood."""

    mark: bytes
    began: float
    mine: set[bytes] = field(default_factory=set)
    shared: set[bytes] = field(default_factory=set)


class Through:
    """One tier's. read: asks the levels below it."""

    def __init__(self, tier: Tier, marks: Marks, read: Callable[[Sequence[bytes]], list[Told]]) -> None:
        self.tier = tier
        self.marks = marks
        self.read = read
        self.claims = CLAIMS[tier.cache.kind]
        self.later: deque[tuple[Claim, list[bytes]]] = deque()
        self.running = False

    def begin(self, keys: Sequence[bytes]) -> Claim:
        """Mark these keys; marks that can't be set are owed."""
        claim = Claim(MARK + os.urandom(SIGN_BYTES), monotonic())
        for part, told in zip(*self._on_parts(keys, partial(self._claim, claim)), strict=True):
            for key, alone in zip(part.keys, told, strict=True):
                if alone is not None:
                    (claim.mine if alone else claim.shared).add(key)
            self.marks.owe([key for key, alone in zip(part.keys, told, strict=True) if alone is None])
        return claim

    def end(self, claim: Claim, now: Mapping[bytes, Item]) -> list[bytes]:
        """The write is done below, soon after `begin`: the keys and values of `now` come into this level. Returns the
        keys that did not, because they can't, or because their marks are no longer this writer's alone."""
        there = self._replace(claim, {key: item for key, item in now.items() if key in claim.mine})
        if claim.shared:
            self._do_later(claim, [key for key in claim.shared if key in now])
        return [key for key in now if key not in there]

    def _claim(self, claim: Claim, part: Part) -> list[bool | None]:
        ask = partial(self.tier.ask, part.shard, klass=IDEMPOTENT)
        return self.claims.claim(part.keys, claim.mark, self.tier.pace.mark_s, ask)

    def _replace(self, claim: Claim, items: Mapping[bytes, Item]) -> set[bytes]:
        """Where the mark still stands; the keys that are there then."""

        def replace(part: Part) -> list[bool]:
            ask = partial(self.tier.ask, part.shard, klass=IDEMPOTENT)
            entries = [(key, items[key], self.tier.seconds(items[key])) for key in part.keys]
            lasting = [entry for entry in entries if entry[2] >= self.tier.pace.mark_s]
            told = dict(zip([key for key, _, _ in lasting], self.claims.replace(claim.mark, lasting, ask), strict=True))
            return [told.get(key, False) for key in part.keys]

        parts, told = self._on_parts(list(items), replace)
        return {key for part, there in zip(parts, told, strict=True)
                for key, is_there in zip(part.keys, there, strict=True) if is_there}  # fmt: skip

    def _on_parts(self, keys: Sequence[bytes], call: Callable[[Part], T]) -> tuple[list[Part], list[T]]:
        """What it answers for the keys of each server."""
        parts = [part for part in self.tier.split(list(dict.fromkeys(keys))) if part.shard != NOWHERE]
        return parts, parallel.each(call, parts)

    # ---- marks of several writers

    def _do_later(self, claim: Claim, keys: list[bytes]) -> None:
        if keys and len(self.later) < MAX_LATER:
            self.later.append((claim, keys))
            if not self.running:
                self.running = True
                gevent.spawn(self._run)

    def _run(self) -> None:
        try:
            while self.later:
                claim, keys = self.later.popleft()
                gevent.sleep(max(0.0, claim.began + self.tier.pace.slow_s - monotonic()))
                below = self.read(keys)
                self._replace(claim, {key: one for key, one in zip(keys, below, strict=True) if isinstance(one, Item)})
        finally:
            self.running = False
