"""What a write does to the levels above, each in its own way (Level.write): marks before it, and after it the new
values where writes go through; docs/levels.md has the argument for every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Generic, TypeVar

from hyper_proxy.common import parallel
from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Put
from hyper_proxy.tunnel.behind import Behind
from hyper_proxy.tunnel.marks import Marks, Places
from hyper_proxy.tunnel.outcome import Told
from hyper_proxy.tunnel.through import Claim, Through
from hyper_proxy.tunnel.tier import Tier

T = TypeVar("T")
UPDATED = ("through", "behind")

Values = dict[bytes, Item]
"""The new values of a write, as far as they are known when it is done."""


class Writing:
    """All writes above `last`. read(depth, keys): asks the levels from `depth` on."""

    def __init__(
        self, tiers: Sequence[Tier], last: KeyValue, read: Callable[[int, Sequence[bytes]], list[Told]]
    ) -> None:
        self.tiers = tiers
        self.marks: list[Marks] = []
        for tier in tiers:
            self.marks.append(Marks(tier, tier.write_back.longest_s, self.marks))
        self.behind = last if isinstance(last, Behind) else None
        self.through = {
            depth: Through(tier, self.marks[depth], lambda keys, depth=depth: read(depth + 1, keys))  # type: ignore[misc]
            for depth, tier in enumerate(tiers)
            if tier.is_written and tier.level.write in UPDATED
        }

    @contextmanager
    def of(self, keys: Sequence[bytes]) -> Iterator[Values]:
        """Around a write below; what is put into the dictionary meanwhile comes into the levels that writes go through.

        Raises what the write raises, and BackendError where it had to be written below at once and could not.
        """
        began = monotonic()
        claims: dict[int, Claim] = {}
        standing = self._begin(keys, claims)
        marked_at = monotonic()
        values: Values = {}
        try:
            yield values
        except Exception as error:
            if not isinstance(error, ClientError) or self._is_slow(began):  # some keys may be written, or will be
                for marks in self.marks:
                    marks.owe(keys)  # once more in a moment, though the mark stands: the server may do it only then
            raise
        if self._is_slow(began):
            self.mark(keys)
            values = {}
        lacking = self._end(claims, values) if values else []
        for marks, places in zip(self.marks, standing, strict=True):
            marks.renew(places, marked_at)
        if self.behind is not None and (self.behind.backlog or lacking):
            self.behind.settle(lacking if values else keys)

    def _is_slow(self, began: float) -> bool:
        return monotonic() - began > min(tier.pace.slow_s for tier in self.tiers)

    def mark(self, keys: Sequence[bytes]) -> None:
        """In every level, as plainly as can be."""
        parallel.each(lambda marks: marks.set(keys), self.marks)

    def _begin(self, keys: Sequence[bytes], claims: dict[int, Claim]) -> list[Places]:
        """The marks, everywhere at the same time, level by level; with the claims where writes go through."""

        def begin(depth: int) -> Places:
            if depth not in self.through:
                return self.marks[depth].set(keys)
            claim = claims[depth] = self.through[depth].begin(keys)
            return self.marks[depth].all_of(claim.mine | claim.shared)

        return parallel.each(begin, range(len(self.tiers)))

    def _end(self, claims: dict[int, Claim], values: Values) -> list[bytes]:
        """The new values, everywhere at the same time; the keys that the last of the levels has not taken."""
        lacking = parallel.each(lambda depth: self.through[depth].end(claims[depth], values), list(self.through))
        return lacking[-1] if lacking else []


def put_values(entries: Sequence[tuple[bytes, Put]]) -> Values:
    """What keys have after a put; of a key that is named twice, the last."""
    return {key: Item(put.value, put.flags, put.expires_at, 0) for key, put in entries}


def expired_values(keys: Sequence[bytes], before: Sequence[Item | None], expires_at: float | None) -> Values:
    """What keys have that got another time of expiry."""
    return {key: replace(item, expires_at=expires_at) for key, item in zip(keys, before, strict=True) if item}


class Seen(Generic[T]):
    """A change that remembers what it made of each key when it ran last."""

    def __init__(self, keys: Sequence[bytes], change: Change[T]) -> None:
        self.keys = keys
        self.change = change
        self.values: Values = {}

    def __call__(self, items: list[Item | None]) -> tuple[Sequence[Edit], T]:
        edits, result = self.change(items)
        self.values = {
            key: value
            for key, item, edit in zip(self.keys, items, edits, strict=True)
            if (value := _after(item, edit)) is not None and self.keys.count(key) == 1
        }
        return edits, result


def _after(item: Item | None, edit: Edit) -> Item | None:
    """What the key has then; None for nothing."""
    if isinstance(edit, Put):
        return Item(edit.value, edit.flags, edit.expires_at, 0)
    if isinstance(edit, Expire):
        return replace(item, expires_at=edit.expires_at) if item else None
    return item if edit is None else None
