"""Where servers are, and where clients are accepted, as records of model.py."""

from __future__ import annotations

import socket
from dataclasses import dataclass

OUT_OF_SERVICE = {"drained": "drained by an operator", "maintenance": "taken into maintenance by an operator"}
"""The states of a server that serves nobody, and what its clients are told. Who is being served by one that is drained
may finish; maintenance cuts at once."""


@dataclass(frozen=True, slots=True)
class Server:
    """One storage server. Exactly one of host (with port), path (a unix socket) and file (an embedded database) is set.

    `name` is the alias that takes the address's place in a hash ring, "" if there is none. `out` is never written in a
    file: a state of OUT_OF_SERVICE that an operator has ordered, "" while the server serves (overrule.py).
    """

    host: str = ""
    port: int = 0
    path: str = ""
    weight: int = 1
    name: str = ""
    file: str = ""
    out: str = ""

    @property
    def address(self) -> str:
        """Where it is: "10.0.0.1:6379", "[::1]:6379", "unix:/run/a.sock" or "/var/lib/a.db"."""
        return self.file or format_address(self.host, self.port, self.path)

    @property
    def label(self) -> str:
        """What people call it: the alias, else the address."""
        return self.name or self.address

    @property
    def where(self) -> str:
        """Both, as errors name it."""
        return self.address if self.label == self.address else f"{self.label} ({self.address})"


@dataclass(frozen=True, slots=True)
class Listen:
    """An address on which clients are accepted: host and port, or the path of a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def address(self) -> str:
        """As written in the file: "0.0.0.0:6380" or "unix:/run/hyper_proxy/user.sock"."""
        return format_address(self.host, self.port, self.path)


def format_address(host: str, port: int, path: str) -> str:
    """The one text form of an address; an IPv6 host gets its brackets."""
    if path:
        return f"unix:{path}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bound_address(sock: socket.socket) -> str:
    """The same of a socket: where it really listens, in numbers."""
    name = sock.getsockname()
    return format_address("", 0, name) if isinstance(name, str) else format_address(name[0], name[1], "")
