"""Marks that belong to one writer: he learns whether another one stood there, and can put what he has written in the
place of his own, and of no other. Words only, no connections.

    claim    puts his mark in the place of whatever is there; says whether that was a mark: of a writer who may be busy
    replace  puts the value where his mark still stands

redis compares and sets in one script. memcached says with `gets` which version of a value it has and takes a `cas` for
that version only (docs: protocol.txt).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import MARK
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.memcache_cache import storing
from hyper_proxy.storage.redis import encode

Reply = bytes | BackendError
Ask = Callable[[Sequence[bytes]], list[Reply]]
"""Sends requests to the server of the keys and waits for all replies."""
Entry = tuple[bytes, Item, float]
"""A key, its value, and for how many seconds it is kept."""


class Claims(ABC):
    """What a kind of cache must be able to do for a level that writes go through."""

    @abstractmethod
    def claim(self, keys: Sequence[bytes], mark: bytes, seconds: float, ask: Ask) -> list[bool | None]:
        """Put `mark`, which begins with MARK, for so long.

        Of each key: True where no mark stood, False where one did or may have; None where nobody knows whether this
        one stands.
        """

    @abstractmethod
    def replace(self, mark: bytes, entries: Sequence[Entry], ask: Ask) -> list[bool]:
        """Put the values where `mark` stands. Says of each whether it is there; one that can't be held is not."""


YES_OR_NO = {b":1\r\n": True, b":0\r\n": False}


class RedisClaims(Claims):
    """By scripts; they take one key each, so that a server that spreads keys itself can run them, too."""

    CLAIM = (
        "local v = redis.pcall('GETRANGE', KEYS[1], 0, #ARGV[1] - 1) "
        "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) "
        "return v == ARGV[1] and 0 or 1"
    )
    REPLACE = (
        "if redis.pcall('GETRANGE', KEYS[1], 0, #ARGV[1]) ~= ARGV[1] then return 0 end "
        "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) "
        "return 1"
    )

    def claim(self, keys: Sequence[bytes], mark: bytes, seconds: float, ask: Ask) -> list[bool | None]:
        ms = int(seconds * 1000)
        replies = ask([encode("EVAL", self.CLAIM, 1, key, MARK, mark, ms) for key in keys])
        return [YES_OR_NO.get(reply) if isinstance(reply, bytes) else None for reply in replies]

    def replace(self, mark: bytes, entries: Sequence[Entry], ask: Ask) -> list[bool]:
        fit = {
            key: encode("EVAL", self.REPLACE, 1, key, mark, item.value, int(seconds * 1000))
            for key, item, seconds in entries
            if not item.flags
        }
        replies = dict(zip(fit, ask(list(fit.values())), strict=True))
        return [replies.get(key) == b":1\r\n" for key, _, _ in entries]


class MemcacheClaims(Claims):
    """By versions: what was changed between the look and the step is left, as another writer's."""

    def claim(self, keys: Sequence[bytes], mark: bytes, seconds: float, ask: Ask) -> list[bool | None]:
        there = _look(keys, ask)
        if there is None:
            return [None] * len(keys)
        ends = math.ceil(seconds)
        plain = {key: storing(b"set", key, mark, 0, ends) for key in keys}
        first = []
        for key in keys:
            value, version = there.get(key, (None, b""))
            if value is None:
                first.append(storing(b"add", key, mark, 0, ends))
            elif value.startswith(MARK):
                first.append(plain[key])
            else:
                first.append(storing(b"cas", key, mark, 0, ends, version))
        replies = ask(first)
        again = [key for key, reply in zip(keys, replies, strict=True) if reply in (b"NOT_STORED\r\n", *MOVED)]
        repaired = dict(zip(again, ask([plain[key] for key in again]), strict=True)) if again else {}
        told: list[bool | None] = []
        for key, request, reply in zip(keys, first, replies, strict=True):
            alone = request is not plain[key] and key not in repaired
            told.append(alone if repaired.get(key, reply) == b"STORED\r\n" else None)
        return told

    def replace(self, mark: bytes, entries: Sequence[Entry], ask: Ask) -> list[bool]:
        there = _look([key for key, _, _ in entries], ask) or {}
        requests = {}
        for key, item, seconds in entries:
            value, version = there.get(key, (None, b""))
            if value == mark and seconds >= 1:  # 0 would be for ever
                requests[key] = storing(b"cas", key, item.value, item.flags, math.floor(seconds), version)
        replies = dict(zip(requests, ask(list(requests.values())), strict=True))
        return [replies.get(key) == b"STORED\r\n" for key, _, _ in entries]


MOVED = (b"EXISTS\r\n", b"NOT_FOUND\r\n")
"""What memcached says to a `cas` of another version than it has."""


def _look(keys: Sequence[bytes], ask: Ask) -> dict[bytes, tuple[bytes, bytes]] | None:
    """Value and version of the keys that are there; None when the server does not say it."""
    (reply,) = ask([b"gets %b\r\n" % b" ".join(keys)])
    if not isinstance(reply, bytes):
        return None
    found = {}
    at = 0
    while reply.startswith(b"VALUE ", at):
        end = reply.index(b"\r\n", at)
        words = reply[at:end].split(b" ")
        if len(words) != 5:
            return None
        _, key, _, size, version = words
        found[key] = (reply[end + 2 : end + 2 + int(size)], version)
        at = end + 2 + int(size) + 2
    return found if reply[at:] == b"END\r\n" else None


CLAIMS: dict[str, Claims] = {"redis": RedisClaims(), "memcache": MemcacheClaims()}
"""By the kind of cache."""
