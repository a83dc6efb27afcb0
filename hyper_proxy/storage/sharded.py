# cython: language_level=3, annotation_typing=False
"""One key space over several others: a key is in the one that the instance's placement chooses.

What is asked of several of them at once is asked of all at the same time. It is atomic in each, not over all: when one
fails, what the others have done remains done, as with several servers of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from hyper_proxy.common import parallel
from hyper_proxy.common.errors import BackendError, ClientError, HyperProxyError
from hyper_proxy.storage.keyvalue import Change, Item, KeyValue, Mode, Outcome, Partial, Put
from hyper_proxy.storage.numbers import INT64_MAX

T = TypeVar("T")

APART = "the keys of this request are on different servers or tables, and must change together"


def check_together(shards: Iterable[object]) -> None:
    """Raises ClientError for keys of several shards that must change together."""
    if len(set(shards)) > 1:
        raise ClientError(APART)


class Locate(Protocol):
    """hyper_proxy.hashing.placement.Placement, which lies above the storages."""

    def locate(self, data: bytes, start: int, end: int) -> int: ...

    def everywhere(self, key: bytes) -> list[int]: ...


class Shards(Protocol):
    """A list, or what makes its members when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> KeyValue: ...


class Sharded(KeyValue):
    """`shards` in the order of the level's servers, or of its tables; `placement` is set before the first request."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards
        self.placement: Locate | None = None

    def shard(self, key: bytes) -> int:
        """Which of them has the key."""
        if len(self.shards) == 1 or self.placement is None:
            return 0
        return self.placement.locate(key, 0, len(key))

    # ---- verbs

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return self._by_position(keys, lambda shard, part: shard.get_many(part))

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return self._by_position(keys, lambda shard, part: shard.read_many(part))

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        return self._by_position(keys, lambda shard, part: shard.expire_many(part, expires_at))

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        return self._together(keys).update(keys, change)

    def store(self, key: bytes, value: bytes, flags: int = 0, expires_at: float | None = None, mode: Mode = Mode.SET,
              version: int = 0) -> Outcome:
        return self.shards[self.shard(key)].store(key, value, flags, expires_at, mode, version)

    def incr_signed(self, key: bytes, delta: int) -> int:
        return self.shards[self.shard(key)].incr_signed(key, delta)

    def incr_unsigned(self, key: bytes, delta: int) -> int | None:
        return self.shards[self.shard(key)].incr_unsigned(key, delta)

    def persist(self, key: bytes) -> bool:
        return self.shards[self.shard(key)].persist(key)

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        return self._together([key for key, _ in entries]).put_many_if_absent(entries)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        parts = self._split([key for key, _ in entries])
        self._ask(parts, lambda shard, part: shard.put_many([entries[at] for at in part]))

    def delete_many(self, keys: Sequence[bytes]) -> int:
        parts = self._split(keys)
        return sum(self._ask(parts, lambda shard, part: shard.delete_many([keys[at] for at in part])))

    def count(self) -> int:
        return sum(self._ask(self._all(), lambda shard, part: shard.count()))

    def clear(self) -> None:
        self._ask(self._all(), lambda shard, part: shard.clear())

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        """One shard after the other; the cursor says which, and where in it."""
        inner, number = divmod(cursor, len(self.shards))
        following, keys = self.shards[number].scan(inner, limit)
        if following:
            cursor = following * len(self.shards) + number
            if cursor > INT64_MAX:
                raise ClientError("the numbers of these rows are too large to walk them over several servers or tables")
            return cursor, keys
        return (number + 1) % len(self.shards), keys

    # ---- parts

    def _all(self) -> dict[int, list[int]]:
        """Every shard, none of whose keys are asked for."""
        return {number: [] for number in range(len(self.shards))}

    def _split(self, keys: Sequence[bytes]) -> dict[int, list[int]]:
        """The positions of the keys by shard."""
        parts: dict[int, list[int]] = {}
        for at, key in enumerate(keys):
            parts.setdefault(self.shard(key), []).append(at)
        return parts

    def _together(self, keys: Sequence[bytes]) -> KeyValue:
        parts = self._split(keys)
        check_together(parts)
        return self.shards[next(iter(parts), 0)]

    def _by_position(
        self, keys: Sequence[bytes], ask: Callable[[KeyValue, list[bytes]], list[Item | None]]
    ) -> list[Item | None]:
        """Raises Partial when only some of the servers failed."""
        if len(self.shards) == 1:
            return ask(self.shards[0], list(keys))
        parts = self._split(keys)
        answers = self._attempt(parts, lambda shard, part: ask(shard, [keys[at] for at in part]))
        items: list[Item | None] = [None] * len(keys)
        failed: dict[bytes, BackendError] = {}
        for part, answer in zip(parts.values(), answers, strict=True):
            if isinstance(answer, BackendError) and len(parts) > 1:
                failed.update((keys[at], answer) for at in part)
            elif isinstance(answer, HyperProxyError):
                raise answer
            else:
                for at, item in zip(part, answer, strict=True):
                    items[at] = item
        if failed:
            raise Partial({key: failed.get(key, item) for key, item in zip(keys, items, strict=True)})
        return items

    def _ask(self, parts: dict[int, list[int]], ask: Callable[[KeyValue, list[int]], T]) -> list[T]:
        """The answer of each part; all are waited for, then the first error is raised."""
        answers: list[Any] = self._attempt(parts, ask)
        for answer in answers:
            if isinstance(answer, HyperProxyError):
                raise answer
        return answers

    def _attempt(
        self, parts: dict[int, list[int]], ask: Callable[[KeyValue, list[int]], T]
    ) -> list[T | HyperProxyError]:
        def one(number: int) -> T | HyperProxyError:
            try:
                return ask(self.shards[number], parts[number])
            except HyperProxyError as error:
                return error

        return parallel.each(one, list(parts))
