"""As much of a memcached as tests of failures need."""

from __future__ import annotations

from typing import BinaryIO

from tests.kit.fakes.redis import value_of
from tests.kit.fakes.server import Speech

STORES = (b"set", b"add", b"replace", b"append", b"prepend", b"cas")


def item(key: bytes, value: bytes, unique: bytes = b"") -> bytes:
    """One VALUE of a reply."""
    return b"VALUE %s 0 %d%s\r\n%s\r\n" % (key, len(value), unique, value)


class _Memcache:
    garbage = b"*1\r\n$-1\r\n"
    surplus = b"STORED\r\n"
    greetings = frozenset({b"VERSION", b"MN"})

    def read(self, stream: BinaryIO) -> list[bytes]:
        """The words of the line, and the value of a store as the last one."""
        words = stream.readline().split()
        if words and words[0] in STORES:
            words.append(stream.read(int(words[4]) + 2)[:-2])
        elif words and words[0] == b"ms":
            words.append(stream.read(int(words[2]) + 2)[:-2])
        return words

    def answer(self, request: list[bytes]) -> bytes:
        """Values of reads, success to all else."""
        name = request[0]
        if b"noreply" in request:
            return b""
        if name in (b"get", b"gets"):
            unique = b" 1" if name == b"gets" else b""
            return b"".join(item(key, value_of(key), unique) for key in request[1:]) + b"END\r\n"
        if name == b"mn":
            return b"MN\r\n"
        if name == b"mg":
            return b"VA %d\r\n%s\r\n" % (len(value_of(request[1])), value_of(request[1]))
        if name in (b"ms", b"md"):
            return b"HD\r\n"
        if name == b"version":
            return b"VERSION 1.6.0\r\n"
        return b"STORED\r\n" if name in STORES else b"DELETED\r\n" if name == b"delete" else b"OK\r\n"


MEMCACHE: Speech = _Memcache()
