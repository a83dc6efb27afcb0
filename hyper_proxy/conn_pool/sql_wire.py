"""A connection to a SQL server as its driver sees it: a socket and a file in one, with one deadline for an exchange.

The driver's own time-outs count anew with every packet; here all that is sent and read for one statement has to be
there before `deadline`. Nobody is killed for it: the socket itself says that the time is over.
"""

from __future__ import annotations

import io
import socket as plain_socket
from contextlib import suppress
from time import monotonic
from typing import Any

BUFFER_BYTES = 65536


class Wire(io.RawIOBase):
    """`sock`: a connected gevent socket, from now on the wire's own.

    deadline  monotonic time at which the exchange under way must be over
    is_late   it was not
    """

    def __init__(self, sock: Any) -> None:
        super().__init__()
        self.sock = sock
        self.deadline = 0.0
        self.is_late = False
        self.bytes_in = 0
        self.bytes_out = 0
        self._peeking = False
        self._ended = False
        self.reader = io.BufferedReader(self, BUFFER_BYTES)

    # ---- what the driver calls

    def settimeout(self, seconds: float | None) -> None:
        """The driver's wish, which the deadline takes the place of."""

    def makefile(self, mode: str) -> io.BufferedReader[Wire]:
        """The one file of this connection, for reading."""
        return self.reader

    def sendall(self, data: bytes) -> None:
        """Send before the deadline. Raises OSError."""
        try:
            self._limit()
            self.sock.sendall(data)
        except TimeoutError:
            self.is_late = True
            raise
        self.bytes_out += len(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there, at least a byte, before the deadline; 0 at the end. Raises OSError."""
        if self._peeking:
            size = self._read_at_once(buffer)
        else:
            try:
                self._limit()
                size = self.sock.recv_into(buffer)
            except TimeoutError:
                size = self._read_at_once(buffer)  # a last look: was it the worker itself that had no time?
                if size is None:
                    self.is_late = True
                    raise
        if size is not None:
            self.bytes_in += size
            self._ended = self._ended or size == 0
        return size

    def close(self) -> None:
        """Close both, the file and the socket."""
        self.sock.close()
        super().close()

    # ---- what the pool calls

    def is_drained(self) -> bool:
        """When the driver has read: is nothing left of what its file took in, and has the server said nothing more?"""
        self._peeking = True
        try:
            return not self.reader.peek(1) and not self._ended
        except (OSError, ValueError):  # ValueError: the file is closed
            return False
        finally:
            self._peeking = False

    def cut(self) -> None:
        """End it under whoever uses it."""
        with suppress(OSError):
            self.sock.shutdown(plain_socket.SHUT_RDWR)

    def _limit(self) -> None:
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.sock.settimeout(left)

    def _read_at_once(self, buffer: Any) -> int | None:
        self.sock.settimeout(0.0)
        try:
            return int(self.sock.recv_into(buffer))
        except BlockingIOError:
            return None
