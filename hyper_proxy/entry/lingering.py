"""Clients whose connection is ended behind an answer, maybe in the middle of sending: what still comes is dropped.

When a socket is closed with bytes in it that nobody has read, or when some come afterwards, the system answers with a
reset, and that takes the rest of the answer from the client that has not read it yet: an error that says why, a value
behind which it wanted the end itself. So the end is said first, and the client has a while to say its own: RFC 9112,
9.6, which is right for every protocol.
"""

from __future__ import annotations

from socket import MSG_TRUNC, SHUT_WR, socket

from gevent import get_hub

from hyper_proxy.common.descriptors import RESERVE
from hyper_proxy.common.sockio import untaken

LINGER_S = 2.0
MOST_CLIENTS = 128  # at once; for one more, the one that has had the most time gives way
MOST_BYTES = 256 << 20  # of one client
TURN_BYTES = 1 << 18  # then the other clients have their turn

_bin = bytearray(TURN_BYTES)


class Lingering:
    """One for the process. A client in it is no connected one any more: no limit counts it, a drain waits only until it
    has its last answer, and it costs a descriptor and two watchers."""

    def __init__(self) -> None:
        self._leaving: dict[_Leaving, None] = {}  # the first has been there the longest

    def take(self, sock: socket) -> None:
        """Close a client's connected, non-blocking socket when that does no harm, or can't be waited for."""
        if RESERVE.holds(sock.fileno()):
            sock.close()
            return
        try:
            sock.shutdown(SHUT_WR)
        except OSError:  # the client was faster
            sock.close()
            return
        if len(self._leaving) == MOST_CLIENTS:
            next(iter(self._leaving)).end()
        self._leaving[_Leaving(sock, self._leaving)] = None

    @property
    def lacks(self) -> bool:
        """Is there one to which not all has come that was sent to it?"""
        return any(untaken(leaving.sock.fileno()) for leaving in self._leaving)


LINGERING = Lingering()


class _Leaving:
    """One of `others`, which it leaves by itself."""

    def __init__(self, sock: socket, others: dict[_Leaving, None]) -> None:
        self.sock = sock
        self.others = others
        self.left = MOST_BYTES
        loop = get_hub().loop
        self.watcher = loop.io(sock.fileno(), 1)
        self.timer = loop.timer(LINGER_S)
        self.watcher.start(self._drop)
        self.timer.start(self.end)

    def _drop(self) -> None:
        try:
            count = self.sock.recv_into(_bin, 0, MSG_TRUNC)  # of TCP nothing is copied (tcp(7))
        except BlockingIOError:
            return
        except OSError:
            count = 0
        self.left -= count
        if not count or self.left <= 0:
            self.end()

    def end(self) -> None:
        """Close it; who is still sending is reset."""
        del self.others[self]
        self.watcher.close()
        self.timer.close()
        self.sock.close()
