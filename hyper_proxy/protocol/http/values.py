"""What can be done with keys: one function an operation, over a key-value storage. Each may block its greenlet."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from hyper_proxy.protocol.http.refusal import SHOWN, Refusal
from hyper_proxy.protocol.http.requests import Request
from hyper_proxy.protocol.http.responses import JSON, Response, as_json
from hyper_proxy.storage.keyvalue import REMOVE, Edit, Item, KeyValue, Put
from hyper_proxy.storage.numbers import INT64_MAX, INT64_MIN

TAG_BYTES = 12
MAX_FLAGS = 0xFFFFFFFF
MAX_DIGITS = 20
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
CONDITIONS = ("if-match", "if-none-match")
MAX_TTL_S = 10_000_000_000  # some 300 years: every storage can count so far


def tags_of(item: Item) -> tuple[str, str]:
    """The entity tags of the value as it is and as JSON: the same for the same value, whichever level it comes from.

    They differ, or a cache that has one form and asks whether it is still good would give it to who wants the other.
    """
    digest = blake2b(item.value + b"%d" % item.flags, digest_size=TAG_BYTES).hexdigest()
    return f'"{digest}"', f'"{digest}-json"'


# ---- one key


def get(kv: KeyValue, key: bytes, request: Request) -> Response:
    """The value as it is; as JSON, with all that is known of it, for who asks for that."""
    detailed = JSON in request.header("accept")
    item = (kv.get_many if detailed else kv.read_many)([key])[0]
    if item is None:
        raise absent(key)
    check_match(item, request)
    tag = tags_of(item)[detailed]
    headers = (("ETag", tag), ("Vary", "Accept"))
    if names_tag(request.header("if-none-match"), tag):
        return Response(304, headers=headers)
    if not detailed:
        return Response(200, item.value, headers=headers)
    ttl = None if item.expires_at is None else round(max(item.expires_at - time.time(), 0), 3)
    facts = {"ttl": ttl, "flags": item.flags, "version": item.version}
    return as_json(200, {"key": text_of(key), **value_of(item), **facts}, headers)


def put(kv: KeyValue, key: bytes, request: Request) -> Response:
    """Store the body. Says whether the key is new."""
    if "content-range" in request.headers:  # RFC 9110, 14.5: the rest of the value would be lost
        raise Refusal(400, "no_parts", "a value is stored as a whole: a part of one (Content-Range) is not taken")
    entry = Put(request.body, flags_of(request), expiry_of(request))

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], bool]:
        check_conditions(items[0], request)
        return [entry], items[0] is not None

    replaced, _ = kv.update([key], change)
    tag, _ = tags_of(Item(entry.value, entry.flags, None, 0))
    return Response(204 if replaced else 201, headers=(("ETag", tag),))


def delete(kv: KeyValue, key: bytes, request: Request) -> Response:
    """Remove the key."""

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], bool]:
        check_conditions(items[0], request)
        return [REMOVE if items[0] else None], items[0] is not None

    if not kv.update([key], change)[0]:
        raise absent(key)
    return Response(204)


def post(kv: KeyValue, key: bytes, request: Request) -> Response:
    """An operation that depends on what is there: {"op": "incr" | "append" | "expire", ...}."""
    for condition in CONDITIONS:
        if condition in request.headers:
            raise Refusal(400, "no_condition", f"{condition} is a condition of PUT and DELETE: POST can't keep to it")
    content = content_of(request)
    name = content.get("op")
    if not isinstance(name, str) or name not in OPERATIONS:
        raise Refusal(400, "bad_operation", f"op is one of {', '.join(OPERATIONS)}")
    run, field = OPERATIONS[name]
    check_fields(content, "op", field)
    return run(kv, key, content)


def incr(kv: KeyValue, key: bytes, content: dict[str, Any]) -> Response:
    """{"op": "incr", "by": 1}: an absent key counts as 0."""
    by = content.get("by", 1)
    if isinstance(by, float) and by.is_integer():
        by = int(by)  # JSON has one kind of number
    if not isinstance(by, int) or isinstance(by, bool) or not INT64_MIN <= by <= INT64_MAX:
        raise Refusal(400, "bad_operation", "by is an integer of 64 bits")
    return as_json(200, {"value": kv.incr_signed(key, by)})


def append(kv: KeyValue, key: bytes, content: dict[str, Any]) -> Response:
    """{"op": "append", "value": "..."}: an absent key counts as empty."""
    value = content.get("value")
    if not isinstance(value, str):
        raise Refusal(400, "bad_operation", "value is a string")
    return as_json(200, {"length": kv.append(key, bytes_of(value, "bad_operation"), create=True)})


def expire(kv: KeyValue, key: bytes, content: dict[str, Any]) -> Response:
    """{"op": "expire", "ttl": seconds, or null for never}: who forgets it does not mean never."""
    ttl = content.get("ttl", 0)
    if ttl is not None and (not isinstance(ttl, int | float) or isinstance(ttl, bool) or not 0 < ttl <= MAX_TTL_S):
        raise Refusal(400, "bad_operation", f"ttl is a number of seconds, above 0 and at most {MAX_TTL_S}, or null")
    if kv.expire_many([key], None if ttl is None else time.time() + ttl)[0] is None:
        raise absent(key)
    return as_json(200, {"ttl": ttl})


OPERATIONS = {"incr": (incr, "by"), "append": (append, "value"), "expire": (expire, "ttl")}
"""The function of each, and the field that it has beside op."""


# ---- several keys


def keys_of(request: Request) -> tuple[list[str], tuple[bytes, ...]]:
    """{"keys": [...]}: as they are written, and as bytes."""
    content = content_of(request)
    names = content.get("keys")
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise Refusal(400, "bad_keys", "keys is a list of strings")
    check_fields(content, "keys")
    return names, tuple(bytes_of(name, "bad_keys") for name in names)


def mget(kv: KeyValue, names: list[str], keys: Sequence[bytes]) -> Response:
    """{"values": {key: {"value": ...} or null}}."""
    items = kv.read_many(keys)
    values = {name: value_of(item) if item else None for name, item in zip(names, items, strict=True)}
    return as_json(200, {"values": values})


# ---- pieces


def absent(key: bytes) -> Refusal:
    """There is no such key."""
    return Refusal(404, "no_such_key", f"there is no key {text_of(key)!r}")


def text_of(data: bytes) -> str:
    """As text; what is no UTF-8 is escaped."""
    return data.decode("utf-8", "backslashreplace")


def bytes_of(text: str, code: str) -> bytes:
    """A string of JSON in UTF-8. Raises Refusal for half a character (a lone surrogate), which JSON can spell."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Refusal(400, code, f"a string is no Unicode: {error}") from None


def value_of(item: Item) -> dict[str, str]:
    """A value in JSON: as text where it is UTF-8, else in base64."""
    try:
        return {"value": item.value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(item.value).decode()}


def content_of(request: Request) -> dict[str, Any]:
    """The body, an object of JSON. The type is asked for: a web page of others can't send it without being asked."""
    if request.header("content-type").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, "not_json", f"the body must be {JSON}, and Content-Type must say so")
    try:
        content = json.loads(request.body, object_pairs_hook=fields_of)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "not_json", f"the body is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise Refusal(400, "not_json", "the body is no object of JSON")
    return content


def fields_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises Refusal for a field of two values: nobody knows which is meant."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise Refusal(400, "bad_field", f"the field {name[:SHOWN]!r} is given more than once")
        fields[name] = value
    return fields


def check_fields(content: dict[str, Any], *known: str) -> None:
    """Raises Refusal when there is another field: a misspelt one would change nothing unnoticed."""
    for name in content:
        if name not in known:
            raise Refusal(400, "bad_field", f"there is no field {name[:SHOWN]!r}; known here: {', '.join(known)}")


def flags_of(request: Request) -> int:
    """?flags=N: memcache's number of 32 bits."""
    text = request.query.get("flags", "0")
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS or int(text) > MAX_FLAGS:
        raise Refusal(400, "bad_flags", f"flags is a number up to {MAX_FLAGS}")
    return int(text)


def expiry_of(request: Request) -> float | None:
    """?ttl=SECONDS, fractions allowed."""
    text = request.query.get("ttl")
    if text is None:
        return None
    ttl = float(text) if NUMBER.fullmatch(text) else 0.0
    if not 0 < ttl <= MAX_TTL_S:
        raise Refusal(400, "bad_ttl", f"ttl is a number of seconds, above 0 and at most {MAX_TTL_S}")
    return time.time() + ttl


def names_tag(text: str, *tags: str) -> bool:
    """Is one of the tags in this list of If-Match or If-None-Match? A weak one counts as strong (RFC 9110, 8.8.3.2)."""
    return text.strip() == "*" or any(one.strip().removeprefix("W/") in tags for one in text.split(","))


def check_match(item: Item | None, request: Request) -> None:
    """If-Match, which an empty list never fulfils; raises Refusal."""
    wanted = request.headers.get("if-match")
    if wanted is not None and (item is None or not names_tag(wanted, *tags_of(item))):
        raise Refusal(412, "precondition_failed", "If-Match names another value than is there")


def check_conditions(item: Item | None, request: Request) -> None:
    """If-Match and If-None-Match before a write; raises Refusal."""
    check_match(item, request)
    unwanted = request.header("if-none-match")
    if unwanted and item is not None and names_tag(unwanted, *tags_of(item)):
        raise Refusal(412, "precondition_failed", "If-None-Match names the value that is there")
