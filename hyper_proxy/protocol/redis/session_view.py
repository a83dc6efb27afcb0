"""What the commands that the proxy answers itself see of a client's session, and of the worker it is in.

The session is compiled; the handlers are not, and are written against these descriptions. A handler takes the session
and the request's words and returns the whole reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hyper_proxy.config.model import Instance


class WorkerView(Protocol):
    """Counts of one worker's one instance; all but `started` and `clients` only ever rise."""

    @property
    def started(self) -> float:
        """When the worker began, seconds since 1970."""

    @property
    def slot(self) -> int:
        """The worker's number in the fleet."""

    @property
    def clients(self) -> int:
        """Client connections now."""

    @property
    def connections_total(self) -> int:
        """Client connections accepted."""

    @property
    def requests_total(self) -> int:
        """Requests answered."""

    @property
    def bytes_in_total(self) -> int:
        """Bytes read from clients."""

    @property
    def bytes_out_total(self) -> int:
        """Bytes written to clients."""

    @property
    def errors_total(self) -> int:
        """Error replies."""


class SessionView(Protocol):
    """One client connection."""

    name: bytes  # as CLIENT SETNAME gave it; b"" when it did not
    lib_name: bytes  # as CLIENT SETINFO gave it
    lib_ver: bytes

    @property
    def id(self) -> int:
        """The connection's number, unique in the whole fleet as long as it lives."""

    @property
    def resp(self) -> int:
        """Protocol version, 2 or 3."""

    @property
    def db(self) -> int:
        """The database that SELECT chose."""

    @property
    def user(self) -> bytes:
        """Who AUTH said it is; b"default" without."""

    @property
    def address(self) -> str:
        """The client's end of the connection, "10.0.0.7:40112" or "unix:/run/a.sock"."""

    @property
    def laddr(self) -> str:
        """The proxy's end of it."""

    @property
    def created(self) -> float:
        """When it was accepted, time.monotonic()."""

    @property
    def instance(self) -> Instance:
        """The configured instance that it is connected to."""

    @property
    def worker(self) -> WorkerView:
        """The worker's counts."""


Handler = Callable[[SessionView, list[bytes]], bytes]
