"""MGET where some servers have failed, by the instance's policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyper_proxy.common.errors import BackendError
from hyper_proxy.protocol.redis.encode import array
from hyper_proxy.protocol.redis.translate_common import encode_value
from hyper_proxy.storage.keyvalue import Partial

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.session import RedisSession


def elements(keys: Sequence[bytes], partial: Partial, session: RedisSession) -> bytes:
    """The values; for the keys of a server that failed nil, or its error, which is counted once."""
    told: dict[BackendError, bytes] = {}
    replies = []
    for key in keys:
        item = partial.found[key]
        if not isinstance(item, BackendError):
            replies.append(encode_value(item, session))
            continue
        if item not in told:
            told[item] = session.error_reply(item)
        replies.append(told[item] if session.instance.on_partial == "element" else session.nil())
    return array(replies)
