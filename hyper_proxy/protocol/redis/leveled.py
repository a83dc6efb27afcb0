# cython: language_level=3, annotation_typing=False
"""GET and MGET over levels whose first one is redis: the whole reply, from below where that of the first level lacks
something (hyper_proxy/tunnel/descent.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.protocol.redis.encode import array
from hyper_proxy.protocol.redis.framing import Framer, words
from hyper_proxy.protocol.redis.partly import elements
from hyper_proxy.protocol.redis.translate_common import encode_value
from hyper_proxy.storage.cache import Answer
from hyper_proxy.storage.keyvalue import Partial
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.tier import Part

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.session import RedisSession

NO_LIMIT = 1 << 40  # the session has measured the request before


def complete(levels: Levels, raw: bytes, reply: bytes | BackendError, session: RedisSession) -> bytes:
    """The whole reply to a GET or MGET of keys of one shard, of which the first level said `reply`.

    Raises BackendError.
    """
    framer = Framer(NO_LIMIT, NO_LIMIT, NO_LIMIT)
    end = framer.scan(raw, 0)
    verb, *keys = words(raw, framer.args, end)
    single = verb.lower() == b"get"
    shard = levels.tiers[0].placement.locate(keys[0], 0, len(keys[0]))
    answers = _answers(levels, reply, shard, keys, single, session)
    try:
        items = levels.complete(Part(shard, list(range(len(keys))), keys), answers)
    except Partial as partial:
        if single or session.instance.on_partial == "error":
            raise
        return elements(keys, partial, session)
    values = [encode_value(item, session) for item in items]
    return values[0] if single else array(values)


def _answers(
    levels: Levels, reply: bytes | BackendError, shard: int, keys: list[bytes], single: bool, session: RedisSession
) -> list[Answer] | BackendError:
    """What it says of each key; the error when that is nothing one can use."""
    if not isinstance(reply, bytes):
        return reply
    if single and reply == session.nil():
        return [None]
    try:
        return levels.tiers[0].cache.answers(b"*1\r\n" + reply if single else reply, keys)
    except (ReplyError, ValueError) as fault:
        return levels.tiers[0].fault(shard, str(fault))
