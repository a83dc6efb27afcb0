"""Accept clients on one listening socket and run a greenlet for each."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from gevent import get_hub
from gevent import socket as gsocket
from greenlet import greenlet

from hyper_proxy.common import faults
from hyper_proxy.common.descriptors import EXHAUSTED
from hyper_proxy.config.model import format_address
from hyper_proxy.entry.client import Client
from hyper_proxy.entry.lingering import LINGERING

if TYPE_CHECKING:
    from hyper_proxy.entry.admission import Admission
    from hyper_proxy.front import Front

ACCEPTS_PER_TURN = 64  # then the loop goes round: clients that are connected come first
# No client, or one that went away, or that a firewall or its network took away: accept(2) passes such errors on.
NOBODY = frozenset(
    {
        errno.EAGAIN, errno.ECONNABORTED, errno.EINTR, errno.EPERM, errno.EPROTO, errno.ENETDOWN, errno.ENOPROTOOPT,
        errno.EHOSTDOWN, errno.ENONET, errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH,
    }
)  # fmt: skip
PAUSE_S = 0.5  # without descriptors, accepting is tried again after this


class Listener:
    """sock: bound, listening, non-blocking; stays open when accepting stops, its owner closes it."""

    def __init__(self, front: Front, sock: socket.socket, address: str, admission: Admission) -> None:
        self.front = front
        self.admission = admission
        self.sock = sock
        if sock.family != socket.AF_UNIX:
            # Inherited by every client's socket: a second small write must not wait for the client's delayed ACK.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = address
        self.hub = get_hub()
        self.watcher = self.hub.loop.io(sock.fileno(), 1)
        self.timer = self.hub.loop.timer(PAUSE_S)
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
        except OSError as error:
            if error.errno in EXHAUSTED:
                self._pause(os.strerror(error.errno))
            elif error.errno not in NOBODY:
                raise
            return False
        self.hub.loop.run_callback(greenlet(self._run, self.hub).switch, sock, peer)
        return True

    def _pause(self, why: str) -> None:
        """Without it the loop would turn without rest: the client that can't be accepted stays in the queue."""
        self.admission.pauses += 1
        self.admission.say("listener.paused", self.address, address=self.address, why=why, seconds=PAUSE_S)
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
        why = self.admission.refusal(front, sock.fileno())
        if why:
            self._refuse(sock, why)
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
            front.stats.probes += not client.bytes_in
            front.stats.bytes_in += client.bytes_in
            front.stats.bytes_out += client.bytes_out
            client.close()

    def _refuse(self, sock: socket.socket, why: str) -> None:
        self.front.stats.refused += 1
        with suppress(OSError):  # it may be gone, or take nothing: it is let go anyway
            sock.send(self.front.protocol.full())
        LINGERING.take(sock)
        instance = self.front.snapshot.instance.name
        self.admission.say("client.refused", f"{instance} {why}", instance=instance, address=self.address, why=why)


def _name(sock: socket.socket, peer: object) -> str:
    return format_address(peer[0], peer[1], "") if isinstance(peer, tuple) and peer else f"unix:{sock.fileno()}"
