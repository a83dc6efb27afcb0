"""Listening sockets that a service manager has opened and passes on, as sd_listen_fds(3) describes.

They are known by their addresses: one that is written in the same words in `listen` takes the place of a socket that
the master would bind. There is one for all workers, so that the load is spread less evenly than over sockets of
their own; on the other hand it is there before the fleet and after it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

from hyper_proxy.config.model import Listen
from supervisor.listeners import Listener, ListenError

VARIABLES = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
_FIRST_FD = 3


def take_given(environment: MutableMapping[str, str]) -> dict[str, Listener]:
    """The sockets that were passed to this process, by address; the names go from the environment. Raises ListenError
    for one that nobody can connect to."""
    count, pid, _ = (environment.pop(name, "") for name in VARIABLES)
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    given = [_listener(fd) for fd in range(_FIRST_FD, _FIRST_FD + int(count))]
    return {listener.listen.address: listener for listener in given}


def refuse_unwanted(given: dict[str, Listener], taken: set[str]) -> None:
    """Raises ListenError when somebody listens for clients that no instance would serve."""
    for address in sorted(given.keys() - taken):
        raise ListenError(address, "instance.listen", "the service manager has opened it, and no instance has it")


def _listener(fd: int) -> Listener:
    os.set_inheritable(fd, False)
    sock = socket.socket(fileno=fd)
    name = sock.getsockname()
    listen = Listen(path=os.fsdecode(name)) if sock.family == socket.AF_UNIX else Listen(name[0], name[1])
    if sock.type != socket.SOCK_STREAM or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ListenError(listen.address, "the socket unit (ListenStream=)", "what is passed on is no listening socket")
    sock.setblocking(False)
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return Listener(listen, (sock,), is_given=True)
