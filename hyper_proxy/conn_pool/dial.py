"""A connection to a server, on which nothing has been said yet: the first of its addresses that accepts."""

from __future__ import annotations

import socket as plain_socket
from contextlib import suppress
from time import monotonic

from gevent import socket

from hyper_proxy.config.model import Server
from hyper_proxy.conn_pool.dns import Name, UnknownName


def dial(server: Server, name: Name, patience_s: float) -> socket.socket:
    """name: of its host. Raises OSError."""
    deadline = monotonic() + patience_s
    if server.path:
        return _connected(socket.AF_UNIX, server.path, deadline)
    addresses = name.resolve(patience_s)
    for index, ip in enumerate(addresses[:-1]):
        share = seconds_left(deadline) / (len(addresses) - index)  # an address that hangs leaves time for the next
        with suppress(OSError):
            return _dial_ip(ip, server.port, monotonic() + share)
    return _dial_ip(addresses[-1], server.port, deadline)


def kind_of(error: OSError) -> str:
    """Why there is no connection."""
    if isinstance(error, UnknownName):
        return "dns"
    return "timeout" if isinstance(error, TimeoutError) else "refused"


def seconds_left(deadline: float) -> float:
    """Raises TimeoutError when there are none."""
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _dial_ip(ip: str, port: int, deadline: float) -> socket.socket:
    sock = _connected(socket.AF_INET6 if ":" in ip else socket.AF_INET, (ip, port), deadline)
    sock.setsockopt(socket.IPPROTO_TCP, plain_socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, plain_socket.SO_KEEPALIVE, 1)
    return sock


def _connected(family: int, address: object, deadline: float) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds_left(deadline))
        sock.connect(address)
    except TimeoutError:
        if not _is_connected(sock):
            sock.close()
            raise
    except OSError:
        sock.close()
        raise
    return sock


def _is_connected(sock: socket.socket) -> bool:
    """A last look: was it the worker itself that had no time?"""
    try:
        sock.getpeername()
    except OSError:
        return False
    return True
