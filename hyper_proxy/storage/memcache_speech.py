"""What routes must understand of memcached: errors, reads that found nothing, and how an item is copied.

The meta commands mg and ms (protocol.txt of memcached 1.6) carry an item with its flags and time of living.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

from hyper_proxy.conn_pool.routes.speech import EVERYTHING, Speech
from hyper_proxy.storage.memcache_replies import ERRORS

LISTS = (b"get", b"gets")
META = (b"ms", b"md", b"ma", b"mg")
UNKEYED = (b"cache_memlimit", b"verbosity", b"version", b"slabs", b"lru", b"stats", b"mn")
"""Of what a proxy sends to servers, what names no key and changes none."""
RELATIVE_S = 30 * 86400
"""A longer time of living is taken for a moment, in unix seconds."""
_ITEM = re.compile(rb"VA (\d+)(?: f(\d+)| t(-?\d+))+\r\n")
_VALUE = re.compile(rb"VALUE ([^ ]+) \d+ (\d+)[^\r\n]*\r\n")


class MemcacheSpeech(Speech):
    """Text and meta commands."""

    def is_error(self, reply: bytes) -> bool:
        return reply.startswith(ERRORS)

    def empty(self, every_db: bool) -> bytes:
        return b"flush_all\r\n"

    def keys_missed(self, request: bytes, reply: bytes) -> list[bytes]:
        name, *words = words_of(request)
        if name == b"mg":
            return words[:1] if reply.startswith(b"EN") and b"b" not in words[1:] else []
        if name not in LISTS or not reply.endswith(b"END\r\n"):
            return []
        found = _keys_of(reply)
        return [key for key in words if key not in found]

    def size(self, key: bytes) -> bytes:
        return b"mg %b s\r\n" % key

    def size_in(self, reply: bytes) -> int | None:
        if reply.startswith(b"EN"):
            return 0
        return int(reply[4:]) if reply.startswith(b"HD s") else None

    def take_out(self, key: bytes) -> Sequence[bytes]:
        return (b"mg %b f t v\r\n" % key,)

    def remove(self, key: bytes) -> bytes:
        return b"delete %b\r\n" % key

    def removal(self, request: bytes) -> bytes | None:
        name, *words = words_of(request)
        if name == b"md":  # without the version: each server has its own
            return b" ".join([name, *words[:1], *(word for word in words[1:] if word[:1] != b"C")]) + b"\r\n"
        return request if name == b"delete" else None

    def found_none(self, reply: bytes) -> bool:
        return reply.startswith((b"NF", b"NOT_FOUND"))

    def keys_written(self, request: bytes) -> list[bytes] | None:
        name, *words = words_of(request)
        if name == b"flush_all":
            return [EVERYTHING]
        if name in UNKEYED:
            return []
        if name in (b"gat", b"gats"):
            return words[1:]
        if not words or (name in META and b"b" in words[1:]):  # a key in base64 may be one that text can't carry
            return None
        return words[:1]

    @property
    def question(self) -> bytes:
        return b"version\r\n"

    def identity(self, reply: bytes) -> bytes:
        return b""

    def every_key(self, ask: Callable[[int, bytes], bytes]) -> Iterator[tuple[int, bytes]]:
        return iter(())

    def put_in(self, key: bytes, replies: Sequence[bytes], replace: bool = False) -> bytes | None:
        (reply,) = replies
        item = _ITEM.match(reply)
        if item is None:
            return None
        left = int(item[3])
        lives = 0 if left < 0 else max(1, left) if left <= RELATIVE_S else int(time.time()) + left
        mode = b"S" if replace else b"E"
        return b"ms %b %b F%b T%d M%b\r\n%b" % (key, item[1], item[2], lives, mode, reply[item.end() :])


def words_of(request: bytes) -> list[bytes]:
    """The words of a request's line; no other separator than the space is known to memcached."""
    return [word for word in request[: request.index(b"\n")].rstrip(b"\r").split(b" ") if word]


def _keys_of(reply: bytes) -> set[bytes]:
    """The keys of the items of a list."""
    found = set()
    at = 0
    while (item := _VALUE.match(reply, at)) is not None:
        found.add(item[1])
        at = item.end() + int(item[2]) + 2
    return found
