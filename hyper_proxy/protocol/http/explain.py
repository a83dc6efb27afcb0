"""What the HTTP front makes of METHOD KEY, or of MGET KEY ..."""

from __future__ import annotations

from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.http.routes import KEY_METHODS
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
    ground = Ground(instance)
    keys = tuple(Key(key, ground.places(key, sent=key)) for key in words[1:])
    return Explanation(instance, tuple(words), Facts(method, CLASSES[klass], "key"), keys, Outcome(ground.own_way))
