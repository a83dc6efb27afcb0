"""What a key-value storage is, whatever front speaks to it: the interface; its values are those of items.py.

A value is bytes with flags (memcache's 32-bit number, 0 when redis wrote it), a time of expiry, and a version that
grows with every write (memcache's cas). Three verbs carry everything: read many, put many, and `update`, an atomic
read-change-write whose change is a pure function. The named verbs are written with `update`; a storage that has one
of them natively overrides it. Where the protocols disagree there are two verbs, never a guess: `incr_signed` is
redis', `incr_unsigned` is memcached's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.items import REMOVE as REMOVE
from hyper_proxy.storage.items import Change as Change
from hyper_proxy.storage.items import Edit as Edit
from hyper_proxy.storage.items import Expire as Expire
from hyper_proxy.storage.items import Item as Item
from hyper_proxy.storage.items import Mode as Mode
from hyper_proxy.storage.items import NotANumber as NotANumber
from hyper_proxy.storage.items import NumberOverflow as NumberOverflow
from hyper_proxy.storage.items import Outcome as Outcome
from hyper_proxy.storage.items import Partial as Partial
from hyper_proxy.storage.items import Put as Put
from hyper_proxy.storage.items import Remove as Remove
from hyper_proxy.storage.items import TooLong as TooLong
from hyper_proxy.storage.items import counted as counted
from hyper_proxy.storage.items import keep_all as keep_all
from hyper_proxy.storage.items import refuse as refuse
from hyper_proxy.storage.items import replaced as replaced
from hyper_proxy.storage.numbers import INT64_MAX, INT64_MIN, parse_int64

T = TypeVar("T")

LONGEST_BYTES = 512 * 1024 * 1024  # redis' proto-max-bulk-len
LEVELED = " below other levels"
EXPIRED = 1.0  # a time of expiry long past: the item is gone at once


class KeyValue(ABC):
    """One key space. Every verb is atomic, blocks the calling greenlet only, and may raise BackendError."""

    kind: str  # the storage's name in the configuration
    place = ""  # what errors say behind it, where it alone would mislead: LEVELED
    nodes: Any = ()  # a sequence of its servers, for statistics
    longest = LONGEST_BYTES  # limits.max_value_bytes: so far may a value grow whose parts come one by one
    fields: Sequence[str] = ()  # of values that are JSON objects (storage/objects.py); none: values are any bytes
    keeps_versions = True  # False: every version is 0, so nothing can be compared with it

    # ---- what a storage must have

    @abstractmethod
    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        """The live items by position, all of one moment; None where there is none. May raise Partial."""

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        """As get_many, where value and flags are all that counts: a cache may answer, which knows nothing else, each
        key for itself, and not of one moment."""
        return self.get_many(keys)

    @abstractmethod
    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        """Read `keys`, give their items to `change`, apply the edits it returns (one a key, in order), all or nothing.

        `change` must be pure and quick, since it runs while the keys are locked, and may run again; what it raises
        undoes everything and reaches the caller. Returns its result and the version that each Put got (0: no Put).
        """

    @abstractmethod
    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        """Put every entry, all or nothing; of a key that is named twice the last value stays."""

    @abstractmethod
    def count(self) -> int:
        """The number of live keys."""

    @abstractmethod
    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        """At most `limit` live keys from `cursor` (0 starts), and the next cursor, 0 at the end.

        A key that is there all the while is returned at least once.
        """

    @abstractmethod
    def clear(self) -> None:
        """Remove every key. Versions go on growing."""

    def release(self, successor: Any) -> None:  # noqa: B027  a storage in memory, or a shard, has nothing of its own
        """No new request comes here: let go of what the successor, of the same kind or None, has not taken over."""

    # ---- whole values

    def store(self, key: bytes, value: bytes, flags: int = 0, expires_at: float | None = None, mode: Mode = Mode.SET,
              version: int = 0) -> Outcome:
        """Put the value if `mode` allows it; `version` matters to CAS only. Raises ClientError without versions."""
        if mode is Mode.CAS:
            self.need_versions()
        if mode is Mode.SET:
            self.put_many([(key, Put(value, flags, expires_at))])
            return Outcome.STORED

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], Outcome]:
            refusal = refuse(items[0], mode, version)
            return ([None], refusal) if refusal else ([Put(value, flags, expires_at)], Outcome.STORED)

        return self.update([key], change)[0]

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        """Put every entry if not one of their keys is there; says whether it did."""

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], bool]:
            if any(items):
                return keep_all(len(items)), False
            return [put for _, put in entries], True

        return self.update([key for key, _ in entries], change)[0]

    def delete_many(self, keys: Sequence[bytes]) -> int:
        """Remove the keys; the number of those that were there, each counted once."""

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], int]:
            return [REMOVE if item else None for item in items], sum(1 for item in items if item)

        return self.update(list(dict.fromkeys(keys)), change)[0]

    def append(self, key: bytes, data: bytes, *, create: bool) -> int | None:
        """Put `data` behind the value, which keeps flags and expiry: its new length, or None when there is none.

        With `create` (redis) an absent key counts as an empty value; without (memcache) it stays absent. May raise
        TooLong.
        """
        return self._join(key, lambda value: value + data, create)

    def prepend(self, key: bytes, data: bytes) -> int | None:
        """As `append`, before the value; never creates."""
        return self._join(key, lambda value: data + value, False)

    def check_length(self, size: int) -> None:
        """Raises TooLong for a value of so many bytes, if it may not become so long."""
        if size > self.longest:
            raise TooLong(self.longest)

    def _join(self, key: bytes, join: Callable[[bytes], bytes], create: bool) -> int | None:
        def change(items: list[Item | None]) -> tuple[Sequence[Edit], int | None]:
            item = items[0]
            if item is None and not create:
                return [None], None
            put = replaced(item, join(item.value if item else b""))
            self.check_length(len(put.value))
            return [put], len(put.value)

        return self.update([key], change)[0]

    def need_versions(self) -> None:
        """Raises ClientError when a request that compares or shows versions cannot be served."""
        if not self.keeps_versions:
            raise ClientError(f"versions are not kept by this instance's {self.kind} storage")

    # ---- numbers

    def incr_signed(self, key: bytes, delta: int) -> int:
        """redis' arithmetic: signed 64 bits, an absent key is 0, the text is rewritten in its shortest form.

        Raises NotANumber, and NumberOverflow when the sum does not fit.
        """

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], int]:
            item = items[0]
            number = parse_int64(item.value) if item else 0
            if number is None:
                raise NotANumber
            total = number + delta
            if not INT64_MIN <= total <= INT64_MAX:
                raise NumberOverflow
            return [replaced(item, b"%d" % total)], total

        return self.update([key], change)[0]

    def incr_unsigned(self, key: bytes, delta: int) -> int | None:
        """memcached's arithmetic: unsigned 64 bits, None when absent, incr wraps, decr (delta < 0) stops at 0.

        The text is changed in place: a number that gets shorter is padded with spaces on the right. Raises NotANumber.
        """

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], int | None]:
            item = items[0]
            if item is None:
                return [None], None
            put, number = counted(item, delta)
            return [put], number

        return self.update([key], change)[0]

    # ---- times of expiry

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        """Give the keys that are there a new time of expiry (None: never); the items as they were, by position.

        Keys come one after the other: one that is named twice and ends at once is there only the first time.
        """
        over = expires_at is not None and expires_at <= time.time()

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], list[Item | None]]:
            if over:
                items = [None if key in keys[:at] else items[at] for at, key in enumerate(keys)]
            return [Expire(expires_at) if item else None for item in items], items

        return self.update(keys, change)[0]

    def persist(self, key: bytes) -> bool:
        """Take the time of expiry away; says whether there was one."""

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], bool]:
            timed = items[0] is not None and items[0].expires_at is not None
            return [Expire(None) if timed else None], timed

        return self.update([key], change)[0]
