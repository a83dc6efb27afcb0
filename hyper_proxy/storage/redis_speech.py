"""What routes must understand of redis: errors, reads that found nothing, and how a key of any type is copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hyper_proxy.conn_pool.reply_error import ReplyError
from hyper_proxy.conn_pool.routes.speech import Speech
from hyper_proxy.storage.redis_words import encode
from hyper_proxy.storage.redis_written import keys_written

ONE_KEY = frozenset(
    b"BITCOUNT BITPOS DUMP EXISTS GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSTRLEN "
    b"HVALS LINDEX LLEN LPOS LRANGE PEXPIRETIME EXPIRETIME PTTL SCARD SISMEMBER SMEMBERS SMISMEMBER "
    b"SRANDMEMBER STRLEN SUBSTR TTL TYPE XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANDMEMBER "
    b"ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE".split()
)
"""Reads of one key, the word behind the command. EXISTS may have more; then it is left alone."""
NOTHING = frozenset(text.replace(b"|", b"\r\n") for text in b"$-1| $0|| *-1| *0| _| :0| :-2| %0| ~0| +none|".split())
"""What such a read may be answered when there is no such key."""
DBS = re.compile(rb"^db(\d+):keys=", re.MULTILINE)
SCANNED = 500
"""Keys that a server is asked for at once."""
NIL = (b"$-1", b"_")
REMOVING = frozenset((b"DEL", b"GETDEL", b"UNLINK"))


class RedisSpeech(Speech):
    """RESP2 and RESP3.

    busy_s_per_byte: DUMP and RESTORE of hashes, sets and incompressible strings take most, with redis 7.0 on one busy
    core 12 to 17 ns for each byte of MEMORY USAGE.
    """

    busy_s_per_byte = 15e-9

    def is_error(self, reply: bytes) -> bool:
        return reply.startswith((b"-", b"!"))

    def empty(self, every_db: bool) -> bytes:
        return encode("FLUSHALL" if every_db else "FLUSHDB")

    def keys_missed(self, request: bytes, reply: bytes) -> list[bytes]:
        if reply not in NOTHING and not reply.startswith(b"*"):
            return []
        command, *arguments = words_of(request)
        name = command.upper()
        if name == b"MGET":
            found = list(_are_nil(reply))
            return [key for key, missed in zip(arguments, found, strict=True) if missed] if arguments else []
        if name not in ONE_KEY or not arguments or (name == b"EXISTS" and len(arguments) > 1):
            return []
        lacks = reply in NOTHING or all(_are_nil(reply))
        return arguments[:1] if lacks else []

    def size(self, key: bytes) -> bytes:
        return encode("MEMORY", "USAGE", key)

    def size_in(self, reply: bytes) -> int | None:
        if reply.startswith(NIL):
            return 0
        return int(reply[1:]) if reply.startswith(b":") else None

    def take_out(self, key: bytes) -> Sequence[bytes]:
        return encode("DUMP", key), encode("PTTL", key)

    def remove(self, key: bytes) -> bytes:
        return encode("DEL", key)

    def removal(self, request: bytes) -> bytes | None:
        return request if next(iter(words_of(request))).upper() in REMOVING else None

    def found_none(self, reply: bytes) -> bool:
        return reply in NOTHING

    def keys_written(self, request: bytes) -> list[bytes] | None:
        return keys_written(list(words_of(request)))

    @property
    def question(self) -> bytes:
        return encode("INFO", "server")

    def identity(self, reply: bytes) -> bytes:
        _, found, rest = reply.partition(b"run_id:")
        return rest[: rest.index(b"\r\n")] if found else b""

    def every_key(self, ask: Callable[[int, bytes], bytes]) -> Iterator[tuple[int, bytes]]:
        for db in DBS.findall(ask(0, encode("INFO", "keyspace"))):
            cursor = b"0"
            while True:
                reply = ask(int(db), encode("SCAN", cursor, "COUNT", SCANNED))
                if not reply.startswith(b"*2\r\n$"):
                    raise ReplyError(f"SCAN was answered {reply[:80]!r}")
                cursor, *keys = _strings(reply[4:])
                yield from ((int(db), key) for key in keys)
                if cursor == b"0":
                    break

    def put_in(self, key: bytes, replies: Sequence[bytes], replace: bool = False) -> bytes | None:
        dump, left = replies
        if not dump.startswith(b"$") or dump.startswith(NIL) or not left.startswith(b":"):
            return None
        milliseconds = int(left[1:])
        if milliseconds == -2:
            return None
        payload = dump[dump.index(b"\n") + 1 : -2]
        lives = 0 if milliseconds == -1 else max(1, milliseconds)  # to RESTORE 0 is for ever
        return encode("RESTORE", key, lives, payload, *(["REPLACE"] if replace else []))


def words_of(request: bytes) -> Iterator[bytes]:
    """The words of a whole request, which the proxy has found well-formed."""
    at = request.index(b"\n") + 1
    while at < len(request):
        end = request.index(b"\r\n", at)
        size = int(request[at + 1 : end])
        yield request[end + 2 : end + 2 + size]
        at = end + size + 4


def _strings(reply: bytes) -> Iterator[bytes]:
    """The strings of a reply, of the arrays in it, too."""
    at = 0
    while at < len(reply):
        end = reply.index(b"\r\n", at)
        if reply[at : at + 1] == b"$":
            size = int(reply[at + 1 : end])
            yield reply[end + 2 : end + 2 + size]
            end += size + 2
        at = end + 2


def _are_nil(reply: bytes) -> Iterator[bool]:
    """Of each element of an array of strings: is it nil?"""
    at = reply.index(b"\n") + 1
    while at < len(reply):
        end = reply.index(b"\r\n", at)
        nil = reply[at:end] in NIL
        yield nil
        at = end + 2 if nil or reply[at : at + 1] != b"$" else end + int(reply[at + 1 : end]) + 4
