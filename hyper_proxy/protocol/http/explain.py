"""What the HTTP front makes of METHOD PATH, of METHOD KEY, or of MGET KEY ...: MGET stands for POST .../_mget."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.http.refusal import refusal_of
from hyper_proxy.protocol.http.requests import Request
from hyper_proxy.protocol.http.routes import KEY_METHODS, MGET, ROOT, errand_of
from hyper_proxy.stats.classes import CLASSES, READ

DOCUMENT = b"/v1/openapi.json"
OF_WHAT_IS_THERE = frozenset({"no_such_key", "precondition_failed"})


def explain(instance: Instance, words: list[bytes]) -> Explanation:
    """Raises BadQuestion for a request that no instance would serve."""
    method = words[0].decode("latin-1").upper()
    known = (*KEY_METHODS, MGET)
    if method not in known:
        raise BadQuestion(f"'{method}' is none of {', '.join(known)}")
    if len(words) < 2 or (method != MGET and len(words) > 2):
        raise BadQuestion(f"{method} takes {'some keys' if method == MGET else 'one key'}")
    klass = READ if method == MGET else KEY_METHODS[method].klass
    ground = Ground(instance, klass == READ)
    facts = Facts(method, CLASSES[klass], "key")
    if any(word.startswith(b"/") and not word.startswith(ROOT) for word in words[1:]):
        way = f"nothing is asked: keys are at /v1/{instance.name}/KEY"
        return Explanation(instance, tuple(words), facts, (), Outcome(way, error="404 no_such_path"))
    if words[1].partition(b"?")[0] == DOCUMENT:
        error = "" if method in ("GET", "HEAD") else "405 no_such_method"
        return Explanation(instance, tuple(words), facts, (), Outcome("the proxy answers it itself", error=error))
    keys = tuple(Key(key, ground.places(key, sent=key)) for key in (_key(instance, word) for word in words[1:]))
    error = _refusal(ground, method, words[1], [key.key for key in keys])
    way = "nothing is asked" if error else ground.own_way
    return Explanation(instance, tuple(words), facts, keys, Outcome(way, error=error))


def _refusal(ground: Ground, method: str, word: bytes, keys: list[bytes]) -> str:
    """Status and code of what is refused whatever the storage has, "" for nothing. A body is not given: for PUT, one
    that can be stored everywhere stands for it, and operations of POST are not tried."""
    instance = ground.instance
    if any(len(key) > instance.limits.max_key_bytes for key in keys):
        return "400 key_too_long"
    if method in ("POST", MGET):
        return ""
    query = dict(parse_qsl(word.partition(b"?")[2].decode("latin-1"), keep_blank_values=True))
    request = Request(method, ROOT + instance.name.encode() + b"/" + keys[0], query if word.startswith(ROOT) else {})
    for run in ground.dry_runs():
        request.body = b"{}" if run.fields else b"0"
        content: Any = errand_of(instance, request).content
        try:
            content(run)
        except ClientError as fault:
            refusal = refusal_of(fault)
            if refusal.word not in OF_WHAT_IS_THERE:
                return f"{refusal.status} {refusal.word}"
    return ""


def _key(instance: Instance, word: bytes) -> bytes:
    """The key that a path /v1/INSTANCE/KEY names, percent-encoded and with or without a query; any other
    word itself."""
    if not word.startswith(ROOT):
        return word
    path = unquote_to_bytes(word.partition(b"?")[0])
    name, _, key = path[len(ROOT) :].partition(b"/")
    if name != instance.name.encode():
        said, own = name.decode("utf-8", "backslashreplace"), instance.name
        raise BadQuestion(f"'{said}' is another instance: the address of '{own}' serves /v1/{own}/KEY")
    if not key:
        raise BadQuestion(f"which key? /v1/{instance.name}/KEY")
    return key
