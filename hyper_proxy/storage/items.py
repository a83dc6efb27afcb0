"""The value model: items, what may become of them, and what can be wrong with that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from hyper_proxy.common.errors import BackendError, ClientError, LimitExceeded
from hyper_proxy.storage.numbers import parse_uint64_prefix, step_uint64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item:
    """A live value as it was read; `expires_at` is in unix seconds, None for never."""

    value: bytes
    flags: int
    expires_at: float | None
    version: int


@dataclass(frozen=True, slots=True)
class Put:
    """An edit: the key gets this value and a new version."""

    value: bytes
    flags: int = 0
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Expire:
    """An edit: the key keeps value and version and gets another time of expiry."""

    expires_at: float | None


@dataclass(frozen=True, slots=True)
class Remove:
    """An edit: the key goes."""


REMOVE = Remove()

Edit = Put | Expire | Remove | None  # None: the key stays as it is
Change = Callable[[list[Item | None]], tuple[Sequence[Edit], T]]


class Mode(Enum):
    """On which condition `store` stores."""

    SET = "always"
    ADD = "only when the key is absent"
    REPLACE = "only when the key is there"
    CAS = "only when the key is there with the given version"


class Outcome(Enum):
    """What `store` did; the words are memcached's."""

    STORED = b"STORED"
    NOT_STORED = b"NOT_STORED"  # ADD or REPLACE: the condition did not hold
    EXISTS = b"EXISTS"  # CAS: another version is there
    NOT_FOUND = b"NOT_FOUND"  # CAS: no such key


class NotANumber(ClientError):
    """Arithmetic on a value that is not a number of the kind asked for; each front words it in its own way."""

    word = "not_a_number"

    def __init__(self) -> None:
        super().__init__("the value is not a number")


class NumberOverflow(ClientError):
    """Arithmetic whose result does not fit into the numbers of the front."""

    word = "not_a_number"

    def __init__(self) -> None:
        super().__init__("the result is out of range")


class TooLong(LimitExceeded):
    """A value would become longer than the instance takes; each front words it in its own way."""

    def __init__(self, longest: int) -> None:
        super().__init__("max_value_bytes", f"the value would be longer than limits.max_value_bytes ({longest})")


class Partial(BackendError):
    """Some servers failed at a read of several keys: what was found by key, and the error of each of their keys."""

    def __init__(self, found: dict[bytes, Item | BackendError | None]) -> None:
        failed = [one for one in found.values() if isinstance(one, BackendError)]
        super().__init__(failed[0].instance, failed[0].node, failed[0].kind, "")
        self.args = (f"{failed[0]} ({len(failed)} of {len(found)} keys)",)
        self.found = found


def keep_all(count: int) -> list[Edit]:
    """The edits that change nothing."""
    return [None] * count


def refuse(item: Item | None, mode: Mode, version: int) -> Outcome | None:
    """Why `mode` forbids to store over `item`, or None when it allows it."""
    if mode is Mode.ADD:
        return Outcome.NOT_STORED if item else None
    if mode is Mode.REPLACE:
        return None if item else Outcome.NOT_STORED
    if mode is Mode.CAS:
        if item is None:
            return Outcome.NOT_FOUND
        return None if item.version == version else Outcome.EXISTS
    return None


def replaced(item: Item | None, value: bytes) -> Put:
    """The edit that gives `item` another value and leaves flags and expiry as they are."""
    return Put(value, item.flags, item.expires_at) if item else Put(value)


def counted(item: Item, delta: int) -> tuple[Put, int]:
    """The edit of memcached's arithmetic on `item`, and the new number; raises NotANumber."""
    number = parse_uint64_prefix(item.value)
    if number is None:
        raise NotANumber
    total = step_uint64(number, delta)
    return replaced(item, (b"%d" % total).ljust(len(item.value))), total
