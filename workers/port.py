"""What a worker's life needs of the engine that serves the clients."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Protocol

from hyper_proxy.config.model import Config


class EnginePort(Protocol):
    """The layers of hyper_proxy behind one object. Every method runs in a greenlet of the worker."""

    def serve(self, instance_name: str, sock: socket.socket, /) -> None:
        """Starts accepting on a bound, listening, non-blocking socket, which is the engine's from now on."""

    def close(self, instance_name: str, address: str, /) -> None:
        """Stops accepting there and closes the listening socket."""

    def adopt(self, slot: int, instance_name: str, sock: socket.socket, /) -> None:
        """Accepts on a socket of another slot, too, whose worker can't."""

    def give_back(self, slot: int, /) -> None:
        """Stops accepting for that slot."""

    def prepare(self, config: Config, /) -> Any:
        """Builds what a new configuration needs, beside what serves. Raises HyperProxyError when it can't."""

    def discard(self, prepared: Any, /) -> None:
        """Gives up what was prepared and will not serve."""

    def commit(self, prepared: Any, /) -> None:
        """Lets what was prepared serve from the next request on; does not yield."""

    def drain(self, seconds: float, /) -> None:
        """Stops accepting and lets requests finish; returns when no client is left or the time is up."""

    def snapshot(self) -> dict[str, Any]:
        """All counters, as JSON."""


class OperablePort(EnginePort, Protocol):
    """What operators can ask of it, too."""

    def overrule(self, out: Mapping[str, Mapping[str, str]], pinned: Mapping[str, str], /) -> None:
        """Takes these servers out of service, by instance and label, and all others back; these rooms are to serve."""

    def list_clients(self, instance: str, limit: int, /) -> dict[str, Any]:
        """Who is connected, as JSON."""

    def disconnect(self, address: str, /) -> int:
        """Ends the connections of a client, or of all from a host; how many there were."""


class BuildEngine(Protocol):
    """Makes an engine that serves nothing yet."""

    def __call__(self, config: Config, slot: int, /) -> OperablePort: ...


def adopt(fd: int) -> socket.socket:
    """A listening socket that was inherited or sent, as the engine wants it."""
    sock = socket.socket(fileno=fd)
    sock.setblocking(False)
    return sock
