"""Numbers as memcached 1.6.18 reads them from a command line: with C's strtol and strtoul, then cut to their width.

So "+1", "1<TAB>x" and, for a 32-bit field, "4294967296" (0) are numbers. The proxy reads the odd ones as memcached does
and sends on what they mean in plain digits: other versions are stricter and would lose their place in the stream.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(rb"[\t\v\f\r]*([+-]?)([0-9]+)(?=[\t\v\f\r]|\Z)")
_INT64_MAX = 2**63 - 1
_UINT64_MAX = 2**64 - 1


def _read(word: bytes) -> tuple[bool, int] | None:
    """(negative?, absolute value)"""
    found = _NUMBER.match(word)
    # More digits than any number has: do not even convert them.
    if found is None or len(found[2].lstrip(b"0")) > 20:
        return None
    return found[1] == b"-", int(found[2])


def read_unsigned64(word: bytes) -> int | None:
    """A delta or a cas; None when it is no number. A minus sign wraps, if the result has no highest bit."""
    read = _read(word)
    if read is None or read[1] > _UINT64_MAX:
        return None
    negative, size = read
    value = -size & _UINT64_MAX if negative else size
    return None if value > _INT64_MAX and b"-" in word else value


def read_unsigned32(word: bytes) -> int | None:
    """Flags; None when they are no number. Only the lower 32 bits count."""
    value = read_unsigned64(word)
    return None if value is None else value & 0xFFFFFFFF


def read_signed32(word: bytes) -> int | None:
    """A time of expiry or a length; None when it is no number. The lower 32 bits count, with a sign."""
    read = _read(word)
    if read is None:
        return None
    value = -read[1] if read[0] else read[1]
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        return None
    return (value + 2**31) % 2**32 - 2**31
