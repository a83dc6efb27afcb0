"""What the HTTP front makes of METHOD PATH, of METHOD KEY, or of MGET KEY ...: MGET stands for POST .../_mget."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, unquote_to_bytes

from hyper_proxy.common.errors import ClientError, LimitExceeded
from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.http.refusal import Refusal, refusal_of
from hyper_proxy.protocol.http.requests import Request
from hyper_proxy.protocol.http.responses import JSON
from hyper_proxy.protocol.http.routes import ALL_KEYS, KEY_METHODS, MGET, ROOT, errand_of
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
    if method == "POST" and keys[0].key == ALL_KEYS:
        raise BadQuestion(f"its keys are in its body: ask for {MGET} KEY ...")
    error = _refusal(ground, method, words[1], [key.key for key in keys])
    way = "nothing is asked" if error else ground.own_way
    return Explanation(instance, tuple(words), facts, keys, Outcome(way, error=error))


def _refusal(ground: Ground, method: str, word: bytes, keys: list[bytes]) -> str:
    """Status and code of what is refused whatever the storage has, "" for nothing. A body is not given: for PUT, one
    that can be stored everywhere stands for it, and operations of POST are not tried."""
    limits = ground.instance.limits
    request = _mget(ground.instance, keys) if method == MGET else _on_key(ground.instance, method, word, keys[0])
    errand = errand_of(ground.instance, request)
    if isinstance(errand.content, Refusal):
        return _told(errand.content)
    if any(len(key) > limits.max_key_bytes for key in keys):
        return _told(refusal_of(LimitExceeded("max_key_bytes", "")))
    if len(errand.keys) + len(errand.values) > limits.max_arguments:
        return _told(refusal_of(LimitExceeded("max_arguments", "")))
    for run in ground.dry_runs() if method not in ("POST", MGET) else ():
        request.body = b"{}" if run.fields else b"0"
        try:
            errand.content(run)
        except ClientError as fault:
            refusal = refusal_of(fault)
            if refusal.word not in OF_WHAT_IS_THERE:
                return _told(refusal)
    return ""


def _told(refusal: Refusal) -> str:
    return f"{refusal.status} {refusal.word}"


def _mget(instance: Instance, keys: list[bytes]) -> Request:
    """POST .../_mget. JSON has no word for a key that is not UTF-8: half characters stand for its bytes."""
    body = json.dumps({"keys": [key.decode("utf-8", "surrogateescape") for key in keys]}).encode()
    return Request("POST", _path(instance, ALL_KEYS), headers={"content-type": JSON}, body=body)


def _on_key(instance: Instance, method: str, word: bytes, key: bytes) -> Request:
    query = dict(parse_qsl(word.partition(b"?")[2].decode("latin-1"), keep_blank_values=True))
    return Request(method, _path(instance, key), query if word.startswith(ROOT) else {})


def _path(instance: Instance, key: bytes) -> bytes:
    return ROOT + instance.name.encode() + b"/" + key


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
