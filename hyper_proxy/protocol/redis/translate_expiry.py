"""redis' verbs about expiry over a key-value storage; behaviour and words are those of redis 7.0 (expire.c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis.translate_common import (
    ONE,
    ZERO,
    View,
    expiry_ms,
    invalid_expire_time,
    now_ms,
    parse_integer,
    to_seconds,
)
from hyper_proxy.storage.keyvalue import Edit, Expire, Item, KeyValue
from hyper_proxy.storage.numbers import INT64_MAX, INT64_MIN

ABSENT = b":-2\r\n"
LASTING = b":-1\r\n"
HALF_SECOND_MS = 500  # redis rounds to the nearest second

Verb = Callable[[KeyValue, list[bytes], View], bytes]

# condition word -> may the new time replace the present one (None: the key has none, which is later than any time)
CONDITIONS: dict[bytes, Callable[[int, int | None], bool]] = {
    b"NX": lambda new, present: present is None,
    b"XX": lambda new, present: present is not None,
    b"GT": lambda new, present: present is not None and new > present,
    b"LT": lambda new, present: present is None or new < present,
}


def parse_conditions(arguments: Sequence[bytes]) -> set[bytes]:
    """The conditions of EXPIRE and its like; raises ClientError for unknown or incompatible ones."""
    words = set()
    for argument in arguments:
        word = argument.upper()
        if word not in CONDITIONS:
            raise ClientError(f"Unsupported option {argument.decode('utf-8', 'surrogateescape')}")
        words.add(word)
    if b"NX" in words and len(words) > 1:
        raise ClientError("NX and XX, GT or LT options at the same time are not compatible")
    if words >= {b"GT", b"LT"}:
        raise ClientError("GT and LT options at the same time are not compatible")
    return words


def expire_verb(unit_ms: int, *, absolute: bool) -> Verb:
    """EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT."""

    def expire(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
        words = parse_conditions(argv[3:])
        number = parse_integer(argv[2])
        if not INT64_MIN <= number * unit_ms <= INT64_MAX:
            raise invalid_expire_time(argv[0])
        new = number * unit_ms + (0 if absolute else now_ms())
        if new > INT64_MAX:
            raise invalid_expire_time(argv[0])

        def change(items: list[Item | None]) -> tuple[Sequence[Edit], bool]:
            item = items[0]
            if item is None or not all(CONDITIONS[word](new, expiry_ms(item)) for word in words):
                return [None], False
            return [Expire(to_seconds(new))], True

        return ONE if kv.update(argv[1:2], change)[0] else ZERO

    return expire


def ttl_verb(unit_ms: int, *, absolute: bool) -> Verb:
    """TTL, PTTL, EXPIRETIME or PEXPIRETIME."""

    def ttl(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
        item = kv.get_many(argv[1:2])[0]
        if item is None:
            return ABSENT
        moment = expiry_ms(item)
        if moment is None:
            return LASTING
        left = moment if absolute else max(moment - now_ms(), 0)
        return encode.integer(left if unit_ms == 1 else (left + HALF_SECOND_MS) // unit_ms)

    return ttl


def persist(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return ONE if kv.persist(argv[1]) else ZERO
