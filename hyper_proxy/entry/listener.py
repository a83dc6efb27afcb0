"""Accept clients on one listening socket and run a greenlet for each."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from gevent import get_hub
from gevent import socket as gsocket
from greenlet import greenlet

from hyper_proxy.common import faults, log
from hyper_proxy.entry.client import Client

if TYPE_CHECKING:
    from hyper_proxy.front import Front

ACCEPTS_PER_TURN = 64  # then the loop goes round: clients that are connected come first
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
LOG_EVERY_S = 10.0  # a listener that pauses again and again says so at most so often
PAUSE_S = 0.5  # without descriptors, accepting is tried again after this


class Listener:
    """sock: bound, listening, non-blocking; stays open when accepting stops, its owner closes it."""

    def __init__(self, front: Front, sock: socket.socket, address: str) -> None:
        self.front = front
        self.sock = sock
        if sock.family != socket.AF_UNIX:
            # Inherited by every client's socket: a second small write must not wait for the client's delayed ACK.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = address
        self.hub = get_hub()
        self.watcher = self.hub.loop.io(sock.fileno(), 1)
        self.timer = self.hub.loop.timer(PAUSE_S)
        self.paused_at = 0.0
        self.watcher.start(self._on_connection)

    def close(self) -> None:
        """Accept those who are in the queue already, for they would be reset; then no more."""
        while self._accept():
            pass
        self.timer.close()
        self.watcher.close()

    def _on_connection(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not self._accept():
                return

    def _accept(self) -> bool:
        """One client; False when there is none, or no descriptor for it."""
        try:
            sock, peer = self.sock.accept()
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return False
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
            self._pause(os.strerror(error.errno))
            return False
        self.hub.loop.run_callback(greenlet(self._run, self.hub).switch, sock, peer)
        return True

    def _pause(self, why: str) -> None:
        if self.paused_at + LOG_EVERY_S < monotonic():
            self.paused_at = monotonic()
            log.warning("listener.paused", address=self.address, why=why, seconds=PAUSE_S)
        self.watcher.stop()
        self.timer.close()
        self.timer = self.hub.loop.timer(PAUSE_S)
        self.timer.start(self._resume)

    def _resume(self) -> None:
        self.watcher.start(self._on_connection)

    def _run(self, sock: socket.socket, peer: object) -> None:
        sock.setblocking(False)
        front = self.front
        limits = front.snapshot.instance.limits
        if front.gone:
            sock.close()
            return
        if len(front.clients) >= limits.max_clients:
            front.stats.refused += 1
            with suppress(OSError):  # it may be gone, or take nothing: it is closed anyway
                sock.send(front.protocol.full)
            sock.close()
            return
        client = Client(sock, _name(sock, peer), self.address, limits.write_timeout_ms / 1000)
        front.stats.accepted += 1
        front.clients.add(client)
        try:
            front.protocol.session(front, client).serve()
        except (OSError, gsocket.timeout):
            front.stats.error("client_lost")
        except Exception:  # noqa: BLE001  else it would surface in the lane that woke the client, and cost others
            faults.show(client)
            front.stats.error("internal")
        finally:
            front.clients.discard(client)
            front.stats.bytes_in += client.bytes_in
            front.stats.bytes_out += client.bytes_out
            client.close()


def _name(sock: socket.socket, peer: object) -> str:
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and peer else f"unix:{sock.fileno()}"
