"""Reply encoding: Python values to RESP2 or RESP3 bytes.

The format is redis' protocol specification (https://redis.io/docs/latest/develop/reference/protocol-spec/). `resp` is
the client's protocol version, 2 or 3: what RESP2 has no type for is sent in the older form that redis itself chooses, a
map as a flat array, a set as an array, a double as a bulk string, a boolean as an integer, a push as an array, a
verbatim text as a bulk string. Parts given as bytes to `array`, `mapping`, `unordered` and `push` are encoded replies;
`value` encodes deeply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

RESP2 = 2
RESP3 = 3

OK = b"+OK\r\n"
PONG = b"+PONG\r\n"
QUEUED = b"+QUEUED\r\n"
RESET = b"+RESET\r\n"
EMPTY_ARRAY = b"*0\r\n"

# A line break inside a line reply would end it early: as redis does, each becomes a space.
_BREAKS = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True, slots=True)
class Simple:
    """A text that is sent as a simple string wherever it stands in a nested value."""

    text: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A text for human eyes: INFO, CLIENT INFO, LOLWUT."""

    text: str


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def simple(text: str | bytes) -> bytes:
    """A simple string: one line."""
    return b"+%b\r\n" % _bytes(text).translate(_BREAKS)


def error(text: str | bytes) -> bytes:
    """An error; the text begins with its code in capitals: "ERR ...", "CROSSSLOT ..."."""
    return b"-%b\r\n" % _bytes(text).translate(_BREAKS)


def integer(number: int) -> bytes:
    """A signed integer of 64 bits; a greater one raises OverflowError, since no client could read it."""
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(f"{number} is no 64-bit integer")
    return b":%d\r\n" % number


def bulk(text: str | bytes) -> bytes:
    """A string of any bytes."""
    data = _bytes(text)
    return b"$%d\r\n%b\r\n" % (len(data), data)


def null(resp: int) -> bytes:
    """Absence, where a string, a number or nothing special was expected."""
    return b"_\r\n" if resp >= RESP3 else b"$-1\r\n"


def null_array(resp: int) -> bytes:
    """Absence, where an array was expected."""
    return b"_\r\n" if resp >= RESP3 else b"*-1\r\n"


def array(parts: Sequence[bytes]) -> bytes:
    """An array of encoded replies."""
    return b"*%d\r\n%b" % (len(parts), b"".join(parts))


def mapping(pairs: Sequence[tuple[bytes, bytes]], resp: int) -> bytes:
    """A map of encoded names to encoded values, in the given order."""
    body = b"".join(part for pair in pairs for part in pair)
    return b"%%%d\r\n%b" % (len(pairs), body) if resp >= RESP3 else b"*%d\r\n%b" % (2 * len(pairs), body)


def unordered(parts: Sequence[bytes], resp: int) -> bytes:
    """A set of encoded replies, which the caller has made unique."""
    return b"%b%d\r\n%b" % (b"~" if resp >= RESP3 else b"*", len(parts), b"".join(parts))


def push(parts: Sequence[bytes], resp: int) -> bytes:
    """Out-of-band data: a published message, the answer to SUBSCRIBE."""
    return b"%b%d\r\n%b" % (b">" if resp >= RESP3 else b"*", len(parts), b"".join(parts))


def boolean(truth: bool, resp: int) -> bytes:
    """True or false."""
    if resp >= RESP3:
        return b"#t\r\n" if truth else b"#f\r\n"
    return b":1\r\n" if truth else b":0\r\n"


def double(number: float, resp: int) -> bytes:
    """A floating-point number, in the fewest digits that read back as the same number."""
    if math.isnan(number) or math.isinf(number):
        text = str(number).encode()
    else:
        text = (b"%d" % int(number)) if number.is_integer() and abs(number) < 1 << 53 else repr(number).encode()
    return b",%b\r\n" % text if resp >= RESP3 else bulk(text)


def verbatim(text: str | bytes, resp: int) -> bytes:
    """A text for human eyes, marked as plain text."""
    data = _bytes(text)
    return b"=%d\r\ntxt:%b\r\n" % (len(data) + 4, data) if resp >= RESP3 else bulk(data)


def value(item: object, resp: int) -> bytes:
    """Any nested Python value.

    None is null, bool a boolean, int an integer, float a double, bytes and str bulk strings, Simple and Verbatim what
    they say, a mapping a map, a set a set (sorted, so that equal sets encode alike), any other iterable an array.
    Others raise TypeError.
    """
    if item is None:
        return null(resp)
    if isinstance(item, bool):
        return boolean(item, resp)
    if isinstance(item, int):
        return integer(item)
    if isinstance(item, float):
        return double(item, resp)
    if isinstance(item, (bytes, str)):
        return bulk(item)
    return _compound(item, resp)


def _compound(item: object, resp: int) -> bytes:
    if isinstance(item, Simple):
        return simple(item.text)
    if isinstance(item, Verbatim):
        return verbatim(item.text, resp)
    if isinstance(item, Mapping):
        return mapping([(value(name, resp), value(part, resp)) for name, part in item.items()], resp)
    if isinstance(item, (set, frozenset)):
        return unordered(sorted(value(part, resp) for part in item), resp)
    if isinstance(item, Iterable):
        return array([value(part, resp) for part in item])
    raise TypeError(f"{type(item).__name__} has no form in RESP")
