"""Lushan as a storage: memcache's `get` over many read-only databases, whose number stands in front of the key.

A client's key becomes `$db-$key` (https://github.com/taohui/lushan); which database it is in, a rule of the level says
(hyper_proxy/hashing/lushan.py).
"""

from __future__ import annotations

from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.memcache import MAX_KEY_BYTES, MemcacheStorage


class LushanStorage(MemcacheStorage):
    """The Lushan servers of one level."""

    forwards = False


def key_there(db: int, key: bytes) -> bytes:
    """What a Lushan server calls this key of this database. Raises ClientError."""
    there = b"%d-%b" % (db, key)
    if len(there) > MAX_KEY_BYTES:  # Lushan would skip it without a word
        raise ClientError(f"the key is longer than {MAX_KEY_BYTES} bytes with the number of its lushan database")
    return there
