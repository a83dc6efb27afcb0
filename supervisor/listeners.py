"""The listening sockets: bound by the master alone, one per worker slot for TCP, one for all slots for a unix path.

With SO_REUSEPORT each slot has a queue of its own, which the kernel fills evenly. The master keeps every socket open
as long as its address is configured: a worker's successor finds the queue of its predecessor. A unix path can't be
split so; its one socket is shared, and which worker gets a connection is the kernel's choice.

SO_REUSEPORT would let two fleets of one user share a port in silence, so the address is first bound without it.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from dataclasses import dataclass

from hyper_proxy.common import log
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Config, Listen
from supervisor.steering import release, steer

# Connections that wait for a worker to accept. The kernel cuts it off at net.core.somaxconn.
BACKLOG = 1024
# The setting that says where the sidecar listens.
ADMIN_LISTEN = "admin.listen"


class ListenError(HyperProxyError):
    """An address can't be listened on; the text names the address, the reason and the key to change, `fact` is the same
    without what to do."""

    kind = "listen"

    def __init__(self, address: str, key: str, reason: str) -> None:
        self.fact = f"cannot listen on {address}: {reason}"
        super().__init__(f"{self.fact}; change {key}")
        self.address = address
        self.key = key


@dataclass(frozen=True, slots=True)
class Wanted:
    """A listener as a configuration asks for it: for whom, where, and the key that says so."""

    instance: str
    protocol: str
    listen: Listen
    where: str


@dataclass(frozen=True, slots=True)
class Listener:
    """One address and its sockets: one per slot, or one alone for all (a unix path, the sidecar's, or one that
    `is_given` by a service manager, whose path is not ours either)."""

    listen: Listen
    sockets: tuple[socket.socket, ...]
    inode: int = 0
    is_given: bool = False

    def of(self, slot: int) -> socket.socket:
        """The socket that the worker of this slot accepts from."""
        return self.sockets[slot if len(self.sockets) > 1 else 0]

    def close(self) -> None:
        """Closes the master's descriptors and removes the path of a unix socket, if it is still this socket's. A stop
        does so twice, when it begins and at the end; what the system refuses is told once."""
        is_first = self.sockets[0].fileno() >= 0
        for sock in self.sockets:
            sock.close()
        try:
            if self.listen.path and not self.is_given and _inode(self.listen.path) == self.inode:
                os.unlink(self.listen.path)
        except PermissionError as error:  # the folder is not ours any more; the next start replaces a dead socket
            if is_first:
                log.warning("listener.not_removed", error=error)

    def resized(self, slots: int, where: str) -> Listener:
        """The same address for another number of slots: fewer sockets, or more that are bound and do not listen yet.

        A socket that listens has clients in its queue; nobody would take them as long as the new slots have no worker.
        Raises ListenError; nothing new stays open then.
        """
        if self.listen.path or self.is_given:
            return self
        if slots <= len(self.sockets):
            return Listener(self.listen, self.sockets[:slots])
        more: list[socket.socket] = []
        try:
            for _ in range(slots - len(self.sockets)):
                more.append(_bind_tcp(self.listen, where, reuse_port=True))
        except ListenError:
            for sock in more:
                sock.close()
            raise
        return Listener(self.listen, (*self.sockets, *more))

    def close_in_child(self, keep: frozenset[socket.socket]) -> None:
        """Closes the descriptors that a fresh child inherited and does not need; leaves the path alone."""
        for sock in self.sockets:
            if sock not in keep:
                sock.close()


def wanted(config: Config) -> dict[str, Wanted]:
    """Every listener of a configuration by its address, which is unique in a checked configuration."""
    return {
        listen.address: Wanted(instance.name, instance.protocol, listen, f"instance[{index}].listen[{position}]")
        for index, instance in enumerate(config.instances)
        for position, listen in enumerate(instance.listen)
    }


def fit(current: dict[str, Listener], wishes: dict[str, Wanted], slots: int) -> dict[str, Listener]:
    """The listeners that a configuration wants for that many slots, made of those there are and new ones.

    What is new is closed by `drop(result, current)` if it is not wanted after all, and what is not needed any more by
    `drop(current, result)`. Raises ListenError; nothing new stays open then.
    """
    fitting: dict[str, Listener] = {}
    try:
        for address, wish in wishes.items():
            known = current.get(address)
            fitting[address] = known.resized(slots, wish.where) if known else _bind(wish.listen, slots, wish.where)
    except ListenError:
        drop(fitting, current)
        raise
    return fitting


def drop(listeners: dict[str, Listener], kept: dict[str, Listener]) -> None:
    """Closes what of the one is not part of the other; the path of a unix socket goes with its listener."""
    needed = {sock for listener in kept.values() for sock in listener.sockets}
    for address, listener in listeners.items():
        if address not in kept:
            listener.close()
        for sock in listener.sockets:
            if sock not in needed:
                sock.close()


def spread(before: dict[str, Listener], after: dict[str, Listener]) -> None:
    """Lets all sockets of `after` listen, and none but them get new connections, before those of `before` close."""
    for address, listener in after.items():
        known = before.get(address)
        if known is None or listener.listen.path:
            continue
        for sock in listener.sockets[len(known.sockets) :]:
            sock.listen(BACKLOG)
        if len(listener.sockets) < len(known.sockets):
            steer(known.sockets, len(listener.sockets))
        elif len(listener.sockets) > len(known.sockets):
            release(listener.sockets)


def bind_admin(listen: Listen) -> Listener:
    """The sidecar's socket: bound by the master, so that a clash is an error at the start and a restart keeps the
    queue."""
    if listen.path:
        return _bind_unix(listen, ADMIN_LISTEN)
    return Listener(listen, (_listening(listen, ADMIN_LISTEN, reuse_port=False),))


def _bind(listen: Listen, slots: int, where: str) -> Listener:
    if listen.path:
        return _bind_unix(listen, where)
    _bind_tcp(listen, where, reuse_port=False).close()
    sockets: list[socket.socket] = []
    try:
        for _ in range(slots):
            sockets.append(_listening(listen, where, reuse_port=True))
    except ListenError:
        for sock in sockets:
            sock.close()
        raise
    return Listener(listen, tuple(sockets))


def _listening(listen: Listen, where: str, *, reuse_port: bool) -> socket.socket:
    sock = _bind_tcp(listen, where, reuse_port=reuse_port)
    try:
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise ListenError(listen.address, where, _reason(error)) from error
    return sock


def _bind_tcp(listen: Listen, where: str, *, reuse_port: bool) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
    except OSError as error:
        raise ListenError(listen.address, where, _reason(error)) from error
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit both of these from the listener.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            # So that 0.0.0.0 and [::] can both be listed.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise ListenError(listen.address, where, why_no_port(error)) from error
    return sock


def _bind_unix(listen: Listen, where: str) -> Listener:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        _remove_stale(listen.path)
        sock.bind(listen.path)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise ListenError(listen.address, where, _reason(error)) from error
    return Listener(listen, (sock,), _inode(listen.path))


def _remove_stale(path: str) -> None:
    """Removes a socket file on which nobody listens any more. Raises OSError when somebody does, or when it is no
    socket."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "the file exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass  # Its queue is full: somebody listens.
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "it is in use by another process"
    return error.strerror or str(error)


def why_no_port(error: OSError) -> str:
    """The same of a port, and who may have one that the system denies."""
    denied = error.errno == errno.EACCES
    return _reason(error) + (", for so low a port takes root or CAP_NET_BIND_SERVICE" if denied else "")
