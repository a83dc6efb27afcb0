"""Names to addresses, off the request's path: an answer is used until a newer one comes, however old it is.

A name that is due is looked up in the background while the last good addresses are used; only a name that was never
found makes a connection wait, at most as long as the connection itself may take.
"""

from __future__ import annotations

import ipaddress
import socket as plain_socket
from collections.abc import Callable
from time import monotonic
from typing import Any

import gevent
from gevent import socket
from gevent.event import Event

Lookup = Callable[..., "list[tuple[Any, ...]]"]


class UnknownName(OSError):
    """A name has no address."""


class Name:
    """One host name as one node uses it.

    ttl_s: how long an answer is not asked for again; lookup: socket.getaddrinfo, or what takes its place.
    """

    def __init__(self, host: str, ttl_s: float, lookup: Lookup = socket.getaddrinfo) -> None:
        self.host = host
        self.ttl_s = ttl_s
        self.lookup = lookup
        self.addresses: tuple[str, ...] = (host,) if _is_address(host) else ()
        self.fixed = bool(self.addresses)
        self.asked_at = 0.0
        self.failure = ""
        self.found = Event()

    def resolve(self, wait_s: float) -> tuple[str, ...]:
        """The addresses, to be tried in this order. Raises UnknownName: none was ever found, or not within `wait_s`."""
        if self.fixed:
            return self.addresses
        if not self.asked_at or monotonic() - self.asked_at >= self.ttl_s:
            self.asked_at = monotonic()
            self.failure = ""
            gevent.spawn(self._ask)
        if not self.addresses:
            self.found.wait(wait_s)
        if not self.addresses:
            self.asked_at = 0.0
            late = f"the name '{self.host}' was not resolved within {round(wait_s * 1000)} ms"
            raise UnknownName(self.failure or late)
        return self.addresses

    def doubt(self) -> None:
        """None of the addresses could be connected to: ask again with the next connection, before the ttl is over."""
        self.asked_at = 0.0

    def _ask(self) -> None:
        try:
            answers = self.lookup(self.host, None, 0, plain_socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name is too long
            self.failure = f"the name '{self.host}' can't be resolved: {getattr(error, 'strerror', error)}"
        else:
            self.addresses = tuple(dict.fromkeys(str(answer[4][0]) for answer in answers))
        self.found.set()
        self.found.clear()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
