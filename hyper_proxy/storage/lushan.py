"""Lushan as a storage: memcache's `get` over many read-only databases, whose number stands in front of the key.

A client's key becomes `$db-$key` (https://github.com/taohui/lushan); which database it is in, a rule of the level says.
"""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Level, LushanDb, LushanFixed, LushanHashed
from hyper_proxy.hashing import build_hash
from hyper_proxy.storage.memcache import MemcacheStorage

MAX_KEY_BYTES = 250  # a longer key is skipped by Lushan without a word
DbOf = Callable[[bytes], int]


def db_rule(rule: LushanDb) -> DbOf:
    """The function from a client's key to the number of its database; it raises ClientError for a key that has none."""
    if isinstance(rule, LushanFixed):
        db = rule.db
        return lambda key: db
    if isinstance(rule, LushanHashed):
        count, value = rule.count, build_hash(rule.hash).value
        return lambda key: value(key, 0, len(key)) % count
    separator, default = rule.separator.encode(), rule.default
    dbs = {prefix.encode(): db for prefix, db in rule.dbs}

    def by_prefix(key: bytes) -> int:
        prefix, found, _ = key.partition(separator)
        db = dbs.get(prefix, default) if found else default
        if db is None:
            raise ClientError("no lushan database is configured for the prefix of this key")
        return db

    return by_prefix


class LushanStorage(MemcacheStorage):
    """The Lushan servers of one level."""

    speaks = "lushan"
    forwards = False

    def __init__(self, instance: str, level: Level, previous: object = None) -> None:
        super().__init__(instance, level, previous)
        assert level.lushan_db is not None, "a checked configuration has a rule for every lushan level"
        self.db_of = db_rule(level.lushan_db)

    def key_there(self, key: bytes) -> bytes:
        """What the servers call this key. Raises ClientError."""
        there = b"%d-%b" % (self.db_of(key), key)
        if len(there) > MAX_KEY_BYTES:
            raise ClientError(f"the key is longer than {MAX_KEY_BYTES} bytes with the number of its lushan database")
        return there
