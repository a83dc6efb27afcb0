"""What the redis verbs over a key-value storage share: redis' words for bad arguments, milliseconds, replies."""

from __future__ import annotations

import time
from typing import Protocol

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import encode
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.numbers import INT64_MAX, parse_int64

SYNTAX = "syntax error"
NOT_AN_INTEGER = "value is not an integer or out of range"
ZERO = encode.integer(0)
ONE = encode.integer(1)


class View(Protocol):
    """What a verb must know of the client: its version of RESP, 2 or 3."""

    @property
    def resp(self) -> int: ...


def encode_value(item: Item | None, view: View) -> bytes:
    """The item's value, or the client's form of nil."""
    return encode.bulk(item.value) if item else encode.null(view.resp)


def parse_integer(text: bytes) -> int:
    """The argument as a signed 64-bit number; raises ClientError in redis' words."""
    number = parse_int64(text)
    if number is None:
        raise ClientError(NOT_AN_INTEGER)
    return number


def now_ms() -> int:
    """Unix time in milliseconds, redis' clock."""
    return time.time_ns() // 1_000_000


def expiry_ms(item: Item) -> int | None:
    """The item's time of expiry in unix milliseconds."""
    return None if item.expires_at is None else round(item.expires_at * 1000)


def to_seconds(unix_ms: int) -> float:
    """A time of expiry as the storages keep it."""
    return unix_ms / 1000


def invalid_expire_time(command: bytes) -> ClientError:
    """The error of a time of expiry that the command cannot mean."""
    return ClientError(f"invalid expire time in '{command.lower().decode()}' command")


def parse_expire_time(command: bytes, text: bytes, unit_ms: int, *, absolute: bool) -> float:
    """The argument of SET's EX, PX, EXAT and PXAT and their like, as unix seconds; only times above zero are valid."""
    number = parse_integer(text)
    if number <= 0 or number > INT64_MAX // unit_ms:
        raise invalid_expire_time(command)
    unix_ms = number * unit_ms + (0 if absolute else now_ms())
    if unix_ms > INT64_MAX:
        raise invalid_expire_time(command)
    return to_seconds(unix_ms)
