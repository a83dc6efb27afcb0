"""Names to addresses, off the request's path: an answer is used until a newer one comes, however old it is.

A name that is due is looked up in the background while the last good address is used; only a name that was never found
makes a connection wait, at most as long as the connection itself may take.
"""

from __future__ import annotations

import ipaddress
import socket as plain_socket
from time import monotonic

import gevent
from gevent import socket
from gevent.event import Event


class Name:
    """One host name as one node uses it. `ttl_s`: how long an answer is not asked for again."""

    def __init__(self, host: str, ttl_s: float) -> None:
        self.host = host
        self.ttl_s = ttl_s
        self.address = host if _is_address(host) else ""
        self.fixed = bool(self.address)
        self.asked_at = 0.0
        self.failure = ""
        self.found = Event()

    def resolve(self, wait_s: float) -> str:
        """An address. Raises OSError when none was ever found, or not within `wait_s`."""
        if self.fixed:
            return self.address
        if not self.asked_at or monotonic() - self.asked_at >= self.ttl_s:
            self.asked_at = monotonic()
            self.failure = ""
            gevent.spawn(self._ask)
        if not self.address:
            self.found.wait(wait_s)
        if not self.address:
            self.asked_at = 0.0
            raise OSError(self.failure or f"the name '{self.host}' was not resolved within {round(wait_s * 1000)} ms")
        return self.address

    def _ask(self) -> None:
        try:
            answers = socket.getaddrinfo(self.host, None, 0, plain_socket.SOCK_STREAM)
        except OSError as error:
            self.failure = f"the name '{self.host}' can't be resolved: {error.strerror}"
        else:
            self.address = str(answers[0][4][0])
        self.found.set()
        self.found.clear()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
