"""What the HTTP front makes of METHOD PATH, of METHOD KEY, or of MGET KEY ...: MGET stands for POST .../_mget."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.http.routes import KEY_METHODS, ROOT
from hyper_proxy.stats.classes import CLASSES, READ

MGET = "MGET"


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
    keys = tuple(Key(key, ground.places(key, sent=key)) for key in (_key(instance, word) for word in words[1:]))
    return Explanation(instance, tuple(words), facts, keys, Outcome(ground.own_way))


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
