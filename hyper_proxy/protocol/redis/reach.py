"""What a request reaches besides the keys that it names in the client's own database."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hyper_proxy.protocol.redis import wording
from hyper_proxy.protocol.redis.framing import join_words

if TYPE_CHECKING:
    from hyper_proxy.config.model import Instance
    from hyper_proxy.protocol.redis.command import Command


def _copy_db(argv: list[bytes]) -> int:
    words = [word.lower() for word in argv]
    return words.index(b"db", 3) + 1 if b"db" in words[3:-1] else 0


# Where a request names a database besides the client's own: the index of that word, 0 for none.
DB_WORD: dict[bytes, Callable[[list[bytes]], int]] = {b"move": lambda argv: 2, b"copy": _copy_db}


def with_server_db(instance: Instance, name: bytes, argv: list[bytes]) -> list[bytes]:
    """The words with the database as the servers number it: the level's `db` is added. Raises ErrorReply."""
    at = DB_WORD[name](argv) if name in DB_WORD else 0
    db = wording.number(argv[at]) if at else None
    if db is None:
        return argv
    if db >= instance.databases:
        raise wording.ErrorReply(wording.DB_RANGE)
    return [*argv[:at], b"%d" % (instance.levels[-1].db + db), *argv[at + 1 :]]


def in_server_db(instance: Instance, row: Command, raw: bytes, argv: list[bytes]) -> bytes:
    """The same for the request as it came."""
    words = with_server_db(instance, row.name, argv)
    return raw if words is argv else join_words(words)


def check_named(row: Command, argv: list[bytes], shards: int) -> None:
    """Raises ErrorReply for keys that the request does not name, which may be on any of so many shards."""
    if row.outside is not None and shards > 1 and row.outside(argv):
        raise wording.ErrorReply(wording.OUTSIDE_KEYS)
