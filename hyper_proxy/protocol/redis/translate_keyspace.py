"""redis' verbs about keys as such, over a key-value storage; behaviour and words are those of redis 7.0 (db.c)."""

from __future__ import annotations

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis import scan as cursors
from hyper_proxy.protocol.redis.glob import Pattern, compile_pattern
from hyper_proxy.protocol.redis.translate_common import (
    SYNTAX,
    View,
    parse_integer,
)
from hyper_proxy.storage.keyvalue import KeyValue
from hyper_proxy.storage.numbers import INT64_MAX

PAGE_KEYS = 1000  # keys that one step of KEYS or SCAN reads from the storage at most


def delete(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.integer(kv.delete_many(argv[1:]))


def exists(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    """EXISTS and TOUCH: a key that is named twice counts twice."""
    return encode.integer(sum(1 for item in kv.read_many(argv[1:]) if item))


def type_(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return b"+%b\r\n" % (_type(kv) if kv.read_many(argv[1:2])[0] else b"none")


def _type(kv: KeyValue) -> bytes:
    """What values are: those that are objects answer to the verbs of hashes."""
    return b"hash" if kv.fields else b"string"


def dbsize(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.integer(kv.count())


def flush(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    """FLUSHALL and FLUSHDB: there is one database."""
    if len(argv) > 2 or (len(argv) == 2 and argv[1].upper() not in (b"ASYNC", b"SYNC")):
        raise ClientError(SYNTAX)
    kv.clear()
    return encode.OK


def keys(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    pattern = compile_pattern(argv[1])
    found: dict[bytes, None] = {}  # a key that is rewritten during the walk comes twice
    cursor = 0
    while True:
        cursor, page = kv.scan(cursor, PAGE_KEYS)
        found.update(dict.fromkeys(key for key in page if pattern.matches(key)))
        if cursor == 0:
            return encode.array([encode.bulk(key) for key in found])


def scan(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    try:
        cursor = cursors.decode(argv[1], 1).cursor
    except cursors.BadCursor:
        raise ClientError("invalid cursor") from None
    limit, pattern, wanted = _parse_scan(argv[2:], _type(kv))
    following, page = kv.scan(min(cursor, INT64_MAX), min(limit, PAGE_KEYS))
    found = [encode.bulk(key) for key in page if wanted and (pattern is None or pattern.matches(key))]
    return encode.array([encode.bulk(b"%d" % following), encode.array(found)])


def _parse_scan(options: list[bytes], kind: bytes) -> tuple[int, Pattern | None, bool]:
    """COUNT, MATCH, and whether TYPE lets values of this kind through; raises ClientError."""
    limit, pattern, wanted = cursors.DEFAULT_COUNT, None, True
    if len(options) % 2:
        raise ClientError(SYNTAX)
    for name, value in zip(options[::2], options[1::2], strict=True):
        word = name.upper()
        if word == b"COUNT":
            limit = parse_integer(value)
            if limit < 1:
                raise ClientError(SYNTAX)
        elif word == b"MATCH":
            pattern = compile_pattern(value)
        elif word == b"TYPE":
            wanted = value.lower() == kind
        else:
            raise ClientError(SYNTAX)
    return limit, pattern, wanted
