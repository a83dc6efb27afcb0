"""Numbers as memcached 1.6.18 reads them from a command line: with C's strtol and strtoul, then cut to their width.

So "+1", "1<TAB>x" and, for a 32-bit field, "4294967296" (0) are numbers. The proxy reads the odd ones as memcached does
and sends on what they mean in plain digits: other versions are stricter and would lose their place in the stream.
"""

from __future__ import annotations

import re

from hyper_proxy.storage.numbers import INT64_MAX, INT64_MIN, MAX_DIGITS, parse_uint64_prefix

_NUMBER = re.compile(rb"[\t\v\f\r]*([+-]?)([0-9]+)(?=[\t\v\f\r]|\Z)")


def read_unsigned64(word: bytes) -> int | None:
    """A delta or a cas; None when it is no number. A minus sign wraps, if the result has no highest bit."""
    return None if b"\0" in word else parse_uint64_prefix(word)


def read_unsigned32(word: bytes) -> int | None:
    """Flags; None when they are no number. Only the lower 32 bits count."""
    value = read_unsigned64(word)
    return None if value is None else value & 0xFFFFFFFF


def read_signed32(word: bytes) -> int | None:
    """A time of expiry or a length; None when it is no number. The lower 32 bits count, with a sign."""
    found = _NUMBER.match(word)
    if found is None or len(found[2].lstrip(b"0")) > MAX_DIGITS:
        return None
    value = -int(found[2]) if found[1] == b"-" else int(found[2])
    if not INT64_MIN <= value <= INT64_MAX:
        return None
    return (value + 2**31) % 2**32 - 2**31
