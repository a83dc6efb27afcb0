"""The command table: every command of memcached 1.6.18 and what the proxy does with it.

docs/memcache-commands.md describes the same table for users; a test keeps both in step.
"""

from __future__ import annotations

from hyper_proxy.protocol.memcache.command import (
    DELETE,
    EXPTIME,
    LOCAL,
    META,
    META_DEBUG,
    META_STORE,
    NONE,
    NUMBER,
    REFUSED,
    RETRIEVE,
    RETRIEVE_TOUCHING,
    STORE,
    STORE_CAS,
    Command,
)
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE
from hyper_proxy.storage.memcache_replies import ERRORS

_STORED = (b"STORED\r\n", b"NOT_STORED\r\n", b"EXISTS\r\n", b"NOT_FOUND\r\n", *ERRORS)
_NUMBERS = tuple(b"%d" % digit for digit in range(10))


def _whole(codes: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Beginnings of lines whose first word is one of the codes: END is no EN."""
    return tuple(code + end for code in codes for end in (b" ", b"\r"))


def _meta(
    name: bytes, form: int, klass: int, codes: tuple[bytes, ...], hides: tuple[bytes, ...]
) -> Command:
    """A meta command and its quiet twin: q is taken out on the way there, the answers in `hides` on the way back."""
    answers = (*_whole(codes), *ERRORS)
    quiet = Command(name, form, 2, 0, klass, answers, _whole(hides))
    return Command(name, form, 2, 0, klass, answers, (), quiet)


_ROWS = (
    Command(b"get", RETRIEVE, 2, 0, READ),
    Command(b"gets", RETRIEVE, 2, 0, READ),
    Command(b"bget", RETRIEVE, 2, 0, READ),
    Command(b"gat", RETRIEVE_TOUCHING, 2, 0, IDEMPOTENT),
    Command(b"gats", RETRIEVE_TOUCHING, 2, 0, IDEMPOTENT),
    Command(b"set", STORE, 5, 6, IDEMPOTENT, _STORED),
    Command(b"add", STORE, 5, 6, WRITE, _STORED),
    Command(b"replace", STORE, 5, 6, WRITE, _STORED),
    Command(b"append", STORE, 5, 6, WRITE, _STORED),
    Command(b"prepend", STORE, 5, 6, WRITE, _STORED),
    Command(b"cas", STORE_CAS, 6, 7, WRITE, _STORED),
    Command(b"delete", DELETE, 2, 4, IDEMPOTENT, (b"DELETED\r\n", b"NOT_FOUND\r\n", *ERRORS)),
    Command(b"incr", NUMBER, 3, 4, WRITE, (*_NUMBERS, b"NOT_FOUND\r\n", *ERRORS)),
    Command(b"decr", NUMBER, 3, 4, WRITE, (*_NUMBERS, b"NOT_FOUND\r\n", *ERRORS)),
    Command(b"touch", EXPTIME, 3, 4, IDEMPOTENT, (b"TOUCHED\r\n", b"NOT_FOUND\r\n", *ERRORS)),
    _meta(b"mg", META, READ, (b"HD", b"VA", b"EN"), (b"EN",)),
    _meta(b"ms", META_STORE, WRITE, (b"HD", b"NS", b"EX", b"NF"), (b"HD",)),
    _meta(b"md", META, WRITE, (b"HD", b"NF", b"EX"), (b"HD",)),
    _meta(b"ma", META, WRITE, (b"HD", b"VA", b"NF", b"NS", b"EX"), (b"HD", b"VA")),
    Command(b"me", META_DEBUG, 2, 0, ADMIN, (*_whole((b"ME", b"EN")), *ERRORS)),
    Command(b"mn", LOCAL, 1, 0, ADMIN),
    Command(b"version", LOCAL, 1, 0, ADMIN),
    Command(b"verbosity", LOCAL, 2, 3, ADMIN),
    Command(b"stats", LOCAL, 1, 0, ADMIN),
    Command(b"flush_all", LOCAL, 1, 3, WRITE, dangerous=True),
    Command(b"cache_memlimit", LOCAL, 2, 3, ADMIN, dangerous=True),
    Command(b"quit", LOCAL, 1, 0, ADMIN),
    *(
        Command(name, REFUSED, 1, 0, ADMIN, why="it acts on one server; connect to that server")
        for name in (b"slabs", b"lru", b"lru_crawler", b"shutdown", b"extstore", b"watch")
    ),
)

COMMANDS: dict[bytes, Command] = {row.name: row for row in _ROWS}

UNKNOWN = Command(b"", NONE, 1, 0, ADMIN)
