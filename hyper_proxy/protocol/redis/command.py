# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One row of the redis command table: what a command is and how the proxy treats it."""

from __future__ import annotations

from collections.abc import Callable

import cython

from hyper_proxy.stats.classes import ADMIN as ADMIN
from hyper_proxy.stats.classes import READ as READ

# Treatments. The walk over a client's requests looks at this number first.
SINGLE = 0  # one key at a fixed place: forwarded as it came to the shard of that key
SAME_SHARD = 1  # several keys or keys at moving places: forwarded when all are on one shard, else -CROSSSLOT
SPLIT = 2  # split by shard and reduced: MGET, MSET, DEL ...
ANY = 3  # no key, any node may answer: EVAL without keys ...
ALL = 4  # sent to every node and reduced: DBSIZE, SCRIPT LOAD ...
SCAN = 5  # a cursor that carries the shard
LOCAL = 6  # answered by the proxy from what the session knows: PING, TIME ...
SESSION = 7  # changes the session: SELECT, MULTI, WATCH, QUIT, CLIENT REPLY ...
BLOCK = 8  # may block: on a connection of its own
SUBSCRIBE = 9  # turns the connection into a listener: on a connection of its own
REFUSED = 10  # not served; `why` is the reason


@cython.cclass
class Command:
    """A command, or a subcommand (`client|setname`).

    name          lower case, bytes
    arity         as in redis: the exact number of words, or minus the least number
    first, last, step   positions of the keys as in redis (0: none); `last` may count from the end
    find_keys     None, or a function (argv: list[bytes]) -> list[int] that finds keys which are not at fixed places
    blocks        for BLOCK: None (always), or a function (argv) -> bool; where it says no, it is a SAME_SHARD request
    outside       None, or a function (argv) -> bool: does the request read keys that it does not name (SORT with BY)?
                  Such a request cannot be served over more than one shard.
    klass         READ, IDEMPOTENT, WRITE or ADMIN of hyper_proxy.stats.classes
    treatment     one of the constants above
    reduce        name of the reducer for SPLIT and ALL, else ""
    flags         frozenset of redis' own flags of the command, str ("write", "no_multi", "no_auth" ...)
    dangerous     served only when the instance's `allow` names it
    why           for REFUSED: the reason, as the client reads it after "-ERR "
    subcommands   None, or a dict of lower-case name to Command
    """

    name: bytes
    arity: cython.int
    first: cython.int
    last: cython.int
    step: cython.int
    find_keys: Callable[[list[bytes]], list[int]] | None
    blocks: Callable[[list[bytes]], bool] | None
    outside: Callable[[list[bytes]], bool] | None
    flags: frozenset[str]
    klass: cython.int
    treatment: cython.int
    reduce: str
    dangerous: cython.bint
    why: str
    subcommands: dict[bytes, Command] | None

    def __init__(self, name: bytes, arity: int, first: int, last: int, step: int, klass: int, treatment: int, *,
                 find_keys: Callable[[list[bytes]], list[int]] | None = None,
                 blocks: Callable[[list[bytes]], bool] | None = None,
                 outside: Callable[[list[bytes]], bool] | None = None,
                 flags: frozenset[str] = frozenset(), reduce: str = "", dangerous: bool = False, why: str = "",
                 subcommands: dict[bytes, Command] | None = None) -> None:
        self.name = name
        self.arity = arity
        self.first = first
        self.last = last
        self.step = step
        self.klass = klass
        self.treatment = treatment
        self.find_keys = find_keys
        self.blocks = blocks
        self.outside = outside
        self.flags = flags
        self.reduce = reduce
        self.dangerous = dangerous
        self.why = why
        self.subcommands = subcommands

    @cython.ccall
    @cython.exceptval(check=False)
    def accepts(self, argc: cython.Py_ssize_t) -> cython.bint:
        """Is this number of words, the command's own included, right for it?"""
        return argc == self.arity if self.arity >= 0 else argc >= -self.arity
