"""What a master leaves to its successor at an upgrade: the listening sockets and what belongs to them.

The descriptors stay open over the exec. What they are is written into an anonymous file in memory, whose number is in
the environment of the new program:

    {"form": 1, "pid": ..., "generation": ..., "pipe": FD, "pidfile": {"path": ..., "fd": FD} or null,
     "admin": LISTENER, "listeners": [LISTENER, ...], "overrides": what operators have ordered (overrides.py),
     "cells": FD of the generation cells, "board": FD of the board}

    LISTENER: {"host": ..., "port": ..., "path": ..., "inode": ..., "given": ..., "fds": [FD, ...]}

A newer program must read what an older one wrote: a key may be added, none may change its meaning under the same form.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.board import BOARDS
from hyper_proxy.common.cells import CELLS
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.frames import encode_frame
from hyper_proxy.config.model import Listen
from supervisor.current import Current
from supervisor.listeners import Listener
from supervisor.overrides import Overrides

VARIABLE = "HYPER_PROXY_UPGRADE"
FORM = 1
_READ_BYTES = 16 * 1024 * 1024


class EstateError(HyperProxyError):
    """What was left can't be read by this program."""

    kind = "estate"


@dataclass(frozen=True, slots=True)
class Estate:
    """What the predecessor, whose pid and generation these are, has left. `pipe` leads to it; `pidfile` is path and
    descriptor, "" and -1 when it has none."""

    pid: int
    generation: int
    pipe: socket.socket
    admin: Listener
    listeners: dict[str, Listener]
    pidfile: tuple[str, int]
    overrides: Overrides

    def decline(self, error: str) -> None:
        """Tells the predecessor why nothing comes of this program, which is about to end."""
        self.pipe.setblocking(True)
        self.pipe.sendall(encode_frame({"type": "failed", "error": error}))


def leave(current: Current, pipe_fd: int) -> tuple[int, list[int]]:
    """Writes down what is in force: the descriptor of the file, and all descriptors that the successor needs."""
    pidfile = current.pidfile
    document = {
        "form": FORM,
        "pid": os.getpid(),
        "generation": current.generation,
        "pipe": pipe_fd,
        "pidfile": {"path": pidfile.path, "fd": pidfile.fd} if pidfile.fd >= 0 else None,
        "admin": _written(current.admin),
        "listeners": [_written(listener) for listener in current.listeners.values()],
        "overrides": current.overrides.report(),
        "cells": CELLS.fd,
        "board": BOARDS.fd,
    }
    fd = os.memfd_create("hyper_proxy-estate")
    os.write(fd, json.dumps(document).encode())
    return fd, [fd, pipe_fd, CELLS.fd, BOARDS.fd, *_numbers(current)]


def claim_estate(environment: MutableMapping[str, str]) -> Estate | None:
    """What a predecessor has left, None when there is none. The name goes from the environment: it is ours alone.

    Raises EstateError.
    """
    number = environment.pop(VARIABLE, "")
    if not number:
        return None
    try:
        fd = int(number)
        data = os.pread(fd, _READ_BYTES, 0)
        os.close(fd)
        document = json.loads(data)
        if document["form"] != FORM:
            raise EstateError(f"the running master leaves form {document['form']}, this program knows {FORM}")
        return _read(document)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EstateError(f"{VARIABLE}={number} is not what a running master leaves: {error}") from error


def _numbers(current: Current) -> Iterator[int]:
    if current.pidfile.fd >= 0:
        yield current.pidfile.fd
    for listener in (current.admin, *current.listeners.values()):
        for sock in listener.sockets:
            yield sock.fileno()


def _written(listener: Listener) -> dict[str, Any]:
    listen = listener.listen
    fds = [sock.fileno() for sock in listener.sockets]
    where = {"host": listen.host, "port": listen.port, "path": listen.path}
    return where | {"inode": listener.inode, "given": listener.is_given, "fds": fds}


def _read(document: dict[str, Any]) -> Estate:
    listeners = [_listener(row) for row in document["listeners"]]
    CELLS.share(document.get("cells", -1))
    BOARDS.share(document.get("board", -1))
    pidfile = document["pidfile"] or {"path": "", "fd": -1}
    return Estate(
        pid=document["pid"],
        generation=document["generation"],
        pipe=_adopted(document["pipe"]),
        admin=_listener(document["admin"]),
        listeners={listener.listen.address: listener for listener in listeners},
        pidfile=(pidfile["path"], pidfile["fd"]),
        overrides=Overrides.of(document.get("overrides", {})),
    )


def _listener(row: dict[str, Any]) -> Listener:
    listen = Listen(row["host"], row["port"], row["path"])
    return Listener(listen, tuple(_adopted(fd) for fd in row["fds"]), row["inode"], row["given"])


def _adopted(fd: int) -> socket.socket:
    """Not to be passed on to children by accident: they get what they need by forks."""
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd)
