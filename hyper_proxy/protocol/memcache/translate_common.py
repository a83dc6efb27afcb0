"""What the memcache verbs over a key-value storage share: memcached's words for bad arguments, its times."""

from __future__ import annotations

import time

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.numbers import read_signed32, read_unsigned32, read_unsigned64
from hyper_proxy.storage.keyvalue import EXPIRED
from hyper_proxy.storage.memcache import MAX_KEY_BYTES

BAD_LINE = wording.text_of(wording.BAD_FORMAT)
NOT_A_DELTA = wording.text_of(wording.BAD_DELTA)
NOT_NUMERIC = "cannot increment or decrement non-numeric value"
MAX_RELATIVE_S = 60 * 60 * 24 * 30  # an exptime up to 30 days is relative, a greater one is unix time


def check_key(key: bytes) -> None:
    """Raises ClientError when the key is too long."""
    if len(key) > MAX_KEY_BYTES:
        raise ClientError(BAD_LINE)


def parse_flags(text: bytes) -> int:
    """The client's flags, of which 32 bits are kept; raises ClientError."""
    flags = read_unsigned32(text)
    if flags is None:
        raise ClientError(BAD_LINE)
    return flags


def parse_uint64(text: bytes, complaint: str) -> int:
    """An unsigned 64-bit argument; raises ClientError with `complaint`."""
    number = read_unsigned64(text)
    if number is None:
        raise ClientError(complaint)
    return number


def parse_exptime(text: bytes, complaint: str) -> float | None:
    """An exptime as a time of expiry in unix seconds, None for never; raises ClientError with `complaint`."""
    exptime = read_signed32(text)
    if exptime is None:
        raise ClientError(complaint)
    if exptime == 0:
        return None
    if exptime < 0:
        return EXPIRED
    return float(exptime) if exptime > MAX_RELATIVE_S else time.time() + exptime
