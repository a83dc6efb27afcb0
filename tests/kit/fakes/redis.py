"""As much of a redis server as tests of failures need."""

from __future__ import annotations

from typing import BinaryIO

from tests.kit.fakes.server import Speech


def bulk(value: bytes) -> bytes:
    """One string."""
    return b"$%d\r\n%s\r\n" % (len(value), value)


def array(values: list[bytes]) -> bytes:
    """An array of replies."""
    return b"*%d\r\n%s" % (len(values), b"".join(values))


def value_of(key: bytes) -> bytes:
    """What every key holds."""
    return b"value of " + key


class _Redis:
    garbage = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    surplus = bulk(b"nobody asked for this")
    greetings = frozenset({b"AUTH", b"HELLO", b"SELECT", b"PING", b"ECHO"})

    def read(self, stream: BinaryIO) -> list[bytes]:
        """An array of strings, or an inline command."""
        head = stream.readline()
        if not head.startswith(b"*"):
            return head.split()
        words = []
        for _ in range(int(head[1:])):
            size = int(stream.readline()[1:])
            words.append(stream.read(size + 2)[:-2])
        return words

    def answer(self, request: list[bytes]) -> bytes:
        """Values of reads, OK to all else."""
        name = request[0].upper()
        if name == b"GET":
            return bulk(value_of(request[1]))
        if name == b"MGET":
            return array([bulk(value_of(key)) for key in request[1:]])
        if name == b"ECHO":
            return bulk(request[1])
        if name == b"HELLO":
            return b"%1\r\n+proto\r\n:3\r\n"
        if name == b"PING":
            return b"+PONG\r\n"
        if name in (b"DEL", b"UNLINK", b"EXISTS", b"TOUCH"):
            return b":%d\r\n" % (len(request) - 1)
        return b"+OK\r\n"


REDIS: Speech = _Redis()
