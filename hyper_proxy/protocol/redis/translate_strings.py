"""redis' string verbs over a key-value storage; behaviour and words are those of redis 7.0 (t_string.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import encode, longdouble
from hyper_proxy.protocol.redis.translate_common import (
    NOT_AN_INTEGER,
    ONE,
    SYNTAX,
    ZERO,
    View,
    encode_value,
    parse_expire_time,
    parse_integer,
)
from hyper_proxy.storage.keyvalue import (
    REMOVE,
    Edit,
    Expire,
    Item,
    KeyValue,
    Mode,
    NotANumber,
    NumberOverflow,
    Outcome,
    Put,
    TooLong,
    replaced,
)
from hyper_proxy.storage.numbers import INT64_MIN

TOO_LONG = "string exceeds maximum allowed size (proto-max-bulk-len)"
NOT_A_FLOAT = "value is not a valid float"

# option word -> (milliseconds in its unit, is it a point in time)
TIMES = {b"EX": (1000, False), b"PX": (1, False), b"EXAT": (1000, True), b"PXAT": (1, True)}


@dataclass(slots=True)
class Options:
    """The options of SET and GETEX as they were read: words without argument, and at most one time."""

    words: set[bytes] = field(default_factory=set)
    time_word: bytes = b""
    time_text: bytes = b""

    def expires_at(self, command: bytes) -> float | None:
        """The time of expiry in unix seconds, None when no option gives one; raises ClientError."""
        if not self.time_word:
            return None
        unit_ms, absolute = TIMES[self.time_word]
        return parse_expire_time(command, self.time_text, unit_ms, absolute=absolute)


# Which words an option cannot stand beside; "time" is any of TIMES but the option itself.
SET_CONFLICTS = {b"NX": {b"XX"}, b"XX": {b"NX"}, b"GET": set(), b"KEEPTTL": {b"time"}}
GETEX_CONFLICTS = {b"PERSIST": {b"time"}}


def parse_options(arguments: Sequence[bytes], conflicts: dict[bytes, set[bytes]]) -> Options:
    """Read options in any order; a repeated one replaces the first, as in redis. Raises ClientError."""
    options = Options()
    lasting = {word for word, others in conflicts.items() if b"time" in others}
    words = iter(arguments)
    for word in words:
        name = word.upper()
        if name in TIMES:
            text = next(words, None)
            if text is None or options.time_word not in (b"", name) or options.words & lasting:
                raise ClientError(SYNTAX)
            options.time_word, options.time_text = name, text
        elif name in conflicts and not options.words & conflicts[name] and not (options.time_word and name in lasting):
            options.words.add(name)
        else:
            raise ClientError(SYNTAX)
    return options


# ---- whole values


def get(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode_value(kv.read_many(argv[1:2])[0], view)


def set_(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    options = parse_options(argv[3:], SET_CONFLICTS)
    expires_at = options.expires_at(argv[0])
    value, words = argv[2], options.words

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], tuple[bool, Item | None]]:
        item = items[0]
        if (b"NX" in words and item) or (b"XX" in words and not item):
            return [None], (False, item)
        kept = item.expires_at if item and b"KEEPTTL" in words else expires_at
        return [Put(value, 0, kept)], (True, item)

    if not words:
        kv.put_many([(argv[1], Put(value, 0, expires_at))])
        return encode.OK
    (stored, before), _ = kv.update(argv[1:2], change)
    if b"GET" in words:
        return encode_value(before, view)
    return encode.OK if stored else encode.null(view.resp)


def setnx(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return ONE if kv.store(argv[1], argv[2], mode=Mode.ADD) is Outcome.STORED else ZERO


def setex(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return _set_for(kv, argv, 1000)


def psetex(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return _set_for(kv, argv, 1)


def _set_for(kv: KeyValue, argv: list[bytes], unit_ms: int) -> bytes:
    expires_at = parse_expire_time(argv[0], argv[2], unit_ms, absolute=False)
    kv.put_many([(argv[1], Put(argv[3], 0, expires_at))])
    return encode.OK


def getset(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    before, _ = kv.update(argv[1:2], lambda items: ([Put(argv[2])], items[0]))
    return encode_value(before, view)


def getdel(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    before, _ = kv.update(argv[1:2], lambda items: ([REMOVE if items[0] else None], items[0]))
    return encode_value(before, view)


def getex(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    options = parse_options(argv[2:], GETEX_CONFLICTS)
    if not options.words and not options.time_word:
        return get(kv, argv, view)

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], Item | None]:
        # The time is judged only when the key is there: redis answers nil for an absent key and a bad time.
        return [Expire(options.expires_at(argv[0])) if items[0] else None], items[0]

    return encode_value(kv.update(argv[1:2], change)[0], view)


# ---- several keys


def mget(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.array([encode_value(item, view) for item in kv.read_many(argv[1:])])


def mset(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    kv.put_many(_pairs(argv))
    return encode.OK


def msetnx(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return ONE if kv.put_many_if_absent(_pairs(argv)) else ZERO


def _pairs(argv: list[bytes]) -> list[tuple[bytes, Put]]:
    if len(argv) % 2 == 0:
        raise ClientError(f"wrong number of arguments for '{argv[0].lower().decode()}' command")
    return [(argv[i], Put(argv[i + 1])) for i in range(1, len(argv), 2)]


# ---- parts of values


def append(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    try:
        return encode.integer(kv.append(argv[1], argv[2], create=True) or 0)
    except TooLong:
        raise ClientError(TOO_LONG) from None


def strlen(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    item = kv.read_many(argv[1:2])[0]
    return encode.integer(len(item.value)) if item else ZERO


def getrange(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    start, end = parse_integer(argv[2]), parse_integer(argv[3])
    item = kv.read_many(argv[1:2])[0]
    value = item.value if item else b""
    if start < 0 and end < 0 and start > end:
        return encode.bulk(b"")
    first = max(start + len(value) if start < 0 else start, 0)
    last = max(end + len(value) if end < 0 else end, 0)
    return encode.bulk(value[first:last + 1])


def setrange(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    offset, data = parse_integer(argv[2]), argv[3]
    if offset < 0:
        raise ClientError("offset is out of range")

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], int]:
        item = items[0]
        value = item.value if item else b""
        if not data:
            return [None], len(value)
        kv.check_length(offset + len(data))
        value = value[:offset].ljust(offset, b"\0") + data + value[offset + len(data):]
        return [replaced(item, value)], len(value)

    try:
        return encode.integer(kv.update(argv[1:2], change)[0])
    except TooLong:
        raise ClientError(TOO_LONG) from None


# ---- numbers


def incr(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return _add(kv, argv[1], 1)


def decr(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return _add(kv, argv[1], -1)


def incrby(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return _add(kv, argv[1], parse_integer(argv[2]))


def decrby(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    delta = parse_integer(argv[2])
    if delta == INT64_MIN:  # its negative is not a signed 64-bit number
        raise ClientError("decrement would overflow")
    return _add(kv, argv[1], -delta)


def _add(kv: KeyValue, key: bytes, delta: int) -> bytes:
    try:
        return encode.integer(kv.incr_signed(key, delta))
    except NotANumber:
        raise ClientError(NOT_AN_INTEGER) from None
    except NumberOverflow:
        raise ClientError("increment or decrement would overflow") from None


def incrbyfloat(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    def change(items: list[Item | None]) -> tuple[Sequence[Edit], bytes]:
        number = longdouble.parse(items[0].value) if items[0] else longdouble.ZERO
        delta = longdouble.parse(argv[2])
        if number is None or delta is None:
            raise ClientError(NOT_A_FLOAT)
        try:
            text = longdouble.encode(longdouble.add(number, delta))
        except longdouble.NotFinite:
            raise ClientError("increment would produce NaN or Infinity") from None
        return [replaced(items[0], text)], text

    return encode.bulk(kv.update(argv[1:2], change)[0])
