"""In which Lushan database a key is, by the rule of the level (`lushan_db`); the shard is found apart from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import LushanDb, LushanFixed, LushanHashed
from hyper_proxy.hashing.build import build_hash

DbOf = Callable[[bytes], int]


@lru_cache
def db_rule(rule: LushanDb) -> DbOf:
    """The function from a client's key to the number of its database; it raises ClientError for a key that has none."""
    if isinstance(rule, LushanFixed):
        db = rule.db
        return lambda key: db
    if isinstance(rule, LushanHashed):
        count, value = rule.count, build_hash(rule.hash).value
        return lambda key: int(value(key, 0, len(key)) % count)
    separator, default = rule.separator.encode(), rule.default
    dbs = {prefix.encode(): db for prefix, db in rule.dbs}

    def by_prefix(key: bytes) -> int:
        prefix, found, _ = key.partition(separator)
        db = dbs.get(prefix, default) if found else default
        if db is None:
            raise ClientError("no lushan database is configured for the prefix of this key")
        return db

    return by_prefix
