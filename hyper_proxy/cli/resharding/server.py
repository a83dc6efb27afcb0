"""One connection to one redis server: questions and answers, nothing else is under way meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Level, Server
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.redis import RedisGreeting
from hyper_proxy.storage.redis_reply import parse
from hyper_proxy.storage.redis_words import encode
from hyper_proxy.storage.resp import RespParser

WAIT_S = 60.0  # a server that moves a large key answers nobody meanwhile, and may wait for another one besides


class Refused(HyperProxyError):
    """A server can't be reached, or does not do what it is asked."""


class Connection:
    """To a server's database `db`, as the servers number it. more_s: so long it may wait for another server.
    Raises Refused."""

    def __init__(self, level: Level, server: Server, db: int, more_s: float = 0.0) -> None:
        self.server = server
        self.parser = RespParser()
        self.greeting = RedisGreeting(level.username, level.password, db, 2, own_db=db)
        try:
            self.sock = socket.create_connection((server.host, server.port), WAIT_S)
            self.sock.settimeout(WAIT_S + more_s)
            self.greeting.greet(lambda request: self.ask_all([request])[0])
        except (OSError, ReplyError) as error:
            raise Refused(f"{server.label} ({server.address}): {error}") from error

    def ask(self, *words: bytes | str | int) -> object:
        """The answer to one question, as Python data."""
        return self.read(self.ask_all([encode(*words)])[0])

    def read(self, reply: bytes) -> object:
        """An answer as Python data. Raises Refused for an error."""
        if reply.startswith(b"-"):
            raise Refused(f"{self.server.label} ({self.server.address}): {reply[1:-2].decode(errors='replace')}")
        try:
            return parse(reply)
        except ReplyError as error:
            raise Refused(f"{self.server.label} ({self.server.address}): {error}") from error

    def ask_all(self, requests: Sequence[bytes]) -> list[bytes]:
        """The answers to whole requests, as they travel."""
        replies: list[bytes] = []
        try:
            self.sock.sendall(b"".join(requests))
            while len(replies) < len(requests):
                data = self.sock.recv(1 << 18)
                if not data:
                    raise ConnectionResetError("it closed the connection")
                replies += self.parser.feed(data)
        except (OSError, ReplyError) as error:
            raise Refused(f"{self.server.label} ({self.server.address}): {error}") from error
        return replies

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.sock.close()
