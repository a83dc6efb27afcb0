"""GET and MGET over levels whose first one is redis: the whole reply, from below where that of the first level lacks
something (hyper_proxy/tunnel/descent.py)."""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.protocol.redis.encode import array
from hyper_proxy.protocol.redis.framing import Framer, words
from hyper_proxy.protocol.redis.translate_common import View, encode_value
from hyper_proxy.storage.cache import Answer
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.tier import Part

NO_LIMIT = 1 << 40  # the session has measured the request before


def complete(levels: Levels, raw: bytes, shard: int, reply: bytes | BackendError, view: View) -> bytes:
    """The whole reply to a GET or MGET of keys of one shard, of which the first level said `reply`.

    Raises BackendError.
    """
    framer = Framer(NO_LIMIT, NO_LIMIT, NO_LIMIT)
    end = framer.scan(raw, 0)
    verb, *keys = words(raw, framer.args, end)
    single = verb.lower() == b"get"
    answers = _answers(levels, reply, keys, single)
    items = levels.complete(Part(shard, list(range(len(keys))), keys), answers)
    values = [encode_value(item, view) for item in items]
    return values[0] if single else array(values)


def _answers(levels: Levels, reply: bytes | BackendError, keys: list[bytes], single: bool) -> list[Answer] | None:
    """What it says of each key; None when that is nothing one can use."""
    if not isinstance(reply, bytes):
        return None
    try:
        return levels.tiers[0].cache.answers(b"*1\r\n" + reply if single else reply, keys)
    except (ReplyError, ValueError):
        return None
