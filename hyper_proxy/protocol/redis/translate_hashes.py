"""redis' hash verbs over values that are objects; behaviour and words are those of redis 7.0 (t_hash.c).

A member that is null is a field that is not there. The fields are the columns of a table: others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis.translate_common import ONE, ZERO, View, parse_integer
from hyper_proxy.storage.keyvalue import REMOVE, Edit, Item, KeyValue, replaced
from hyper_proxy.storage.numbers import INT64_MAX, INT64_MIN, parse_int64
from hyper_proxy.storage.objects import bytes_of, parse_object, unknown_field, write_object

T = TypeVar("T")


def _fields(kv: KeyValue, words: Sequence[bytes]) -> list[str]:
    """The fields of these names; raises ClientError for one that is none."""
    names = [word.decode("utf-8", "replace") for word in words]
    for name in names:
        if name not in kv.fields:
            raise unknown_field(name, kv.fields)
    return names


def _members(item: Item | None) -> dict[str, bytes]:
    """The fields that are there."""
    members = parse_object(item.value) if item else {}
    return {name: data for name, member in members.items() if (data := bytes_of(member)) is not None}


def _read(kv: KeyValue, key: bytes) -> dict[str, bytes]:
    return _members(kv.read_many([key])[0])


def _change(kv: KeyValue, key: bytes, change: Callable[[dict[str, Any]], tuple[bool, T]]) -> T:
    """Let `change` work on the members, which says whether it did, and with which result."""

    def edit(items: list[Item | None]) -> tuple[Sequence[Edit], T]:
        item = items[0]
        members: dict[str, Any] = parse_object(item.value) if item else {}
        changed, result = change(members)
        if not changed:
            return [None], result
        if all(member is None for member in members.values()):
            return [REMOVE if item else None], result
        value = write_object(members)
        kv.check_length(len(value))
        return [replaced(item, value)], result

    return kv.update([key], edit)[0]


# ---- reading


def hget(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return _optional(_read(kv, argv[1]).get(_fields(kv, argv[2:])[0]), view)


def hmget(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    names = _fields(kv, argv[2:])
    members = _read(kv, argv[1])
    return encode.array([_optional(members.get(name), view) for name in names])


def _optional(data: bytes | None, view: View) -> bytes:
    return encode.null(view.resp) if data is None else encode.bulk(data)


def hgetall(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    pairs = [(encode.bulk(name), encode.bulk(data)) for name, data in _read(kv, argv[1]).items()]
    return encode.mapping(pairs, view.resp)


def hkeys(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.array([encode.bulk(name) for name in _read(kv, argv[1])])


def hvals(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.array([encode.bulk(data) for data in _read(kv, argv[1]).values()])


def hlen(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.integer(len(_read(kv, argv[1])))


def hexists(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return ONE if _fields(kv, argv[2:])[0] in _read(kv, argv[1]) else ZERO


def hstrlen(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.integer(len(_read(kv, argv[1]).get(_fields(kv, argv[2:])[0], b"")))


# ---- writing


def hset(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    return encode.integer(_set(kv, argv))


def hmset(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    _set(kv, argv)
    return encode.OK


def _set(kv: KeyValue, argv: list[bytes]) -> int:
    """The number of fields that were not there."""
    if len(argv) % 2:
        raise ClientError(f"wrong number of arguments for '{argv[0].lower().decode()}' command")
    new = dict(zip(_fields(kv, argv[2::2]), argv[3::2], strict=True))

    def change(members: dict[str, Any]) -> tuple[bool, int]:
        added = sum(members.get(name) is None for name in new)
        members.update(new)
        return True, added

    return _change(kv, argv[1], change)


def hsetnx(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    name = _fields(kv, argv[2:3])[0]

    def change(members: dict[str, Any]) -> tuple[bool, bytes]:
        if members.get(name) is not None:
            return False, ZERO
        members[name] = argv[3]
        return True, ONE

    return _change(kv, argv[1], change)


def hdel(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    names = set(_fields(kv, argv[2:]))

    def change(members: dict[str, Any]) -> tuple[bool, int]:
        gone = [name for name in names if members.get(name) is not None]
        members.update(dict.fromkeys(gone))
        return bool(gone), len(gone)

    return encode.integer(_change(kv, argv[1], change))


def hincrby(kv: KeyValue, argv: list[bytes], view: View) -> bytes:
    name, delta = _fields(kv, argv[2:3])[0], parse_integer(argv[3])

    def change(members: dict[str, Any]) -> tuple[bool, int]:
        before = members.get(name)
        number = 0 if before is None else parse_int64(bytes_of(before) or b"")
        if number is None:
            raise ClientError("hash value is not an integer")
        total = number + delta
        if not INT64_MIN <= total <= INT64_MAX:
            raise ClientError("increment or decrement would overflow")
        members[name] = b"%d" % total
        return True, total

    return encode.integer(_change(kv, argv[1], change))
