"""What is said on a new connection before it is used."""

from __future__ import annotations

import socket as plain_socket
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from gevent import socket

from hyper_proxy.conn_pool.dial import seconds_left
from hyper_proxy.conn_pool.replies import ReplyError, ReplyParser

TOO_MUCH = "the server sent more answers than it was asked for"


class Greeting(Protocol):
    """What a storage says on a new connection before it is used. Equal greetings may share a connection."""

    def greet(self, ask: Callable[[bytes], bytes]) -> None:
        """Talk by `ask(request) -> reply`. Raises ReplyError when the server is not what it should be."""
        ...

    @property
    def probe(self) -> bytes:
        """The request that asks nothing but for an answer."""
        ...

    def __hash__(self) -> int: ...


class Conversation:
    """Question and answer on a new connection, all of it before the deadline.

    A worker that had no time itself gives as much of it again, once.
    """

    def __init__(self, sock: socket.socket, parser: ReplyParser, patience_s: float) -> None:
        self.sock = sock
        self.parser = parser
        self.deadline = monotonic() + patience_s
        self.grace_s = patience_s
        self.heard = b""  # the last that it said

    def ask(self, request: bytes) -> bytes:
        """The one answer."""
        self.sock.settimeout(seconds_left(self.deadline))
        self.sock.sendall(request)
        while True:
            data = self._receive()
            if not data:
                raise ReplyError("the server closed the connection")
            self.heard = data
            replies = self.parser.feed(data)
            if len(replies) > 1 or (replies and not self.parser.is_clean):
                raise ReplyError(TOO_MUCH)
            if replies:
                return replies[0]

    def _receive(self) -> bytes:
        try:
            self.sock.settimeout(seconds_left(self.deadline))
            data = self.sock.recv(65536)
        except TimeoutError:
            # A last look: was it the worker itself that had no time?
            self.sock.settimeout(0.0)
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                raise TimeoutError("timed out") from None
        if monotonic() >= self.deadline:
            self.deadline, self.grace_s = monotonic() + self.grace_s, 0.0
        return data

    def end(self) -> None:
        """The socket is non-blocking from now on; whatever the server has said meanwhile, nobody has asked for."""
        self.sock.settimeout(0.0)
        try:
            unasked = self.sock.recv(1, plain_socket.MSG_PEEK)
        except BlockingIOError:
            return
        raise ReplyError(TOO_MUCH if unasked else "the server closed the connection")
