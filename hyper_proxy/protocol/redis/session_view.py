"""What the commands that the proxy answers itself see of a client's session, and of the instance around it.

The session is compiled; the handlers are not, and are written against these descriptions. A handler takes the session
and the request's words and returns the whole reply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from hyper_proxy.config.model import Instance


class ClientView(Protocol):
    """A client connection's own counts."""

    @property
    def bytes_in(self) -> int:
        """Bytes read from it."""

    @property
    def bytes_out(self) -> int:
        """Bytes written to it."""


class StatsView(Protocol):
    """Counts of one instance in one worker, since the worker began."""

    def snapshot(self) -> Mapping[str, Any]:
        """`requests` by class, `errors` by kind, `accepted`, and `bytes_in`, `bytes_out` of clients that are gone."""


class FrontView(Protocol):
    """One instance in one worker."""

    @property
    def stats(self) -> StatsView:
        """Its counts."""

    @property
    def clients(self) -> Collection[ClientView]:
        """Its connections now."""


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
    def user(self) -> str:
        """Who AUTH said it is; "default" without."""

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
    def front(self) -> FrontView:
        """The instance in this worker."""


Handler = Callable[[SessionView, list[bytes]], bytes]
