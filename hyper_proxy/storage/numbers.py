"""Numbers kept as text, read exactly as redis 7.0 and memcached 1.6 read them.

redis (util.c, string2ll): the shortest decimal form of a signed 64-bit number and nothing else.
memcached (util.c, safe_strtoull): what C's strtoull takes from the front, when a space, a NUL or the end follows.
"""

from __future__ import annotations

import re

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
MAX_DIGITS = 20  # digits of the largest 64-bit number

_INT64 = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_UINT64 = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)(?=[ \t\n\v\f\r\0]|\Z)")


def parse_int64(text: bytes) -> int | None:
    """The number, or None when redis would not take `text` for one."""
    if _INT64.fullmatch(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def parse_uint64_prefix(text: bytes) -> int | None:
    """The number at the front of `text`, or None when memcached would not take it for one.

    A minus sign wraps as in C. When the number has the highest bit, memcached looks for a minus sign, anywhere up to
    the end of the C string, and refuses the number if there is one.
    """
    found = _UINT64.match(text)
    if found is None:
        return None
    sign, digits = found.groups()
    digits = digits.lstrip(b"0") or b"0"
    if len(digits) > MAX_DIGITS or int(digits) > UINT64_MAX:
        return None
    number = -int(digits) & UINT64_MAX if sign == b"-" else int(digits)
    return None if number >> 63 and b"-" in text.partition(b"\0")[0] else number


def step_uint64(number: int, delta: int) -> int:
    """The sum of unsigned 64-bit arithmetic: it wraps at the top and stops at 0."""
    return max(number + delta, 0) & UINT64_MAX
