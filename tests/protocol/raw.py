"""A raw blocking connection to a server: whole replies, byte for byte as they came."""

from __future__ import annotations

import socket
from typing import BinaryIO

REPLY_S = 10.0


class Raw:
    """Sends bytes, reads one reply at a time."""

    def __init__(self, place: int | str) -> None:
        """A port of the loopback interface, or the path of a unix socket."""
        if isinstance(place, int):
            self.sock = socket.create_connection(("127.0.0.1", place), REPLY_S)
        else:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(REPLY_S)
            self.sock.connect(place)
        self.file: BinaryIO = self.sock.makefile("rb")

    def close(self) -> None:
        self.file.close()
        self.sock.close()

    def redis(self, *argv: bytes) -> bytes:
        """The reply to one redis command."""
        parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in argv]
        self.sock.sendall(b"*%d\r\n" % len(argv) + b"".join(parts))
        return self._resp()

    def _resp(self) -> bytes:
        line = self.file.readline()
        kind, number = line[:1], line[1:-2]
        if kind == b"$" and number != b"-1":
            return line + self.file.read(int(number) + 2)
        if kind in (b"*", b"~", b">", b"%") and number != b"-1":
            count = int(number) * (2 if kind == b"%" else 1)
            return line + b"".join(self._resp() for _ in range(count))
        return line

    def memcache(self, request: bytes) -> bytes:
        """All that comes back for a request, maybe nothing: what stands before the answer to a `mn` sent behind it."""
        self.sock.sendall(request + b"mn\r\n")
        reply = b""
        while not (reply == b"MN\r\n" or reply.endswith(b"\r\nMN\r\n")):
            line = self.file.readline()
            assert line, f"connection closed after {request!r}: {reply!r}"
            reply += line
        return reply[:-4]
