"""A connection to one server on which one client listens, relayed to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from socket import SHUT_RDWR
from typing import TYPE_CHECKING

import gevent
from gevent.event import AsyncResult

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.redis_reply import parse

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.node import Node
    from hyper_proxy.protocol.redis.session import RedisSession

KINDS = {
    b"subscribe": (b"channel", True), b"unsubscribe": (b"channel", False),
    b"psubscribe": (b"pattern", True), b"punsubscribe": (b"pattern", False),
    b"ssubscribe": (b"shard", True), b"sunsubscribe": (b"shard", False),
}  # fmt: skip
"""By the word of a (un)subscription, and of its confirmation: what is listened to, and whether it is joined."""


def confirmation(message: bytes) -> tuple[bytes, bytes] | None:
    """Word and name of what confirms a (un)subscription; None for any other message."""
    words = parse(b"*" + message[1:] if message.startswith(b">") else message)
    return (words[0], words[1]) if isinstance(words, list) and words and words[0] in KINDS else None


class Link:
    """hear: is told each message of the server, in order. Raises BackendError when there is no connection.

    awaited: confirmations that the request under way still lacks; there is one request at a time.
    """

    def __init__(self, session: RedisSession, node: Node, hear: Callable[[Link, bytes], None]) -> None:
        self.session = session
        self.node = node
        self.hear = hear
        self.sock = node.connect(session.storage.greeting(0, session.resp))
        self.sock.settimeout(None)
        node.relays[self.sock] = node
        self.parser = node.parser()
        self.awaited = 0
        self.refusal = b""
        self.closed = False
        self.answered: AsyncResult = AsyncResult()
        gevent.spawn(self._relay)

    def ask(self, raw: bytes, count: int) -> bytes:
        """Send a request and wait until all of it is confirmed, by so many messages, or refused: that error, or b"".

        Raises BackendError.
        """
        self.awaited, self.refusal, self.answered = count, b"", AsyncResult()
        try:
            self.sock.sendall(raw)
            self.answered.wait(self.node.read_s)
        except OSError as fault:
            raise self._lost(fault) from fault
        finally:
            self.awaited = 0
        if not self.answered.ready():
            raise self.node.error("timeout", f"no answer within {round(self.node.read_s * 1000)} ms")
        if self.answered.value is not None:
            raise self.answered.value
        return self.refusal

    def confirmed(self) -> None:
        """One confirmation more has come."""
        if self.awaited:
            self.awaited -= 1
            if self.awaited == 0:
                self.answered.set(None)

    def refused(self, message: bytes) -> None:
        """An error has come instead; nothing if no request is under way any more."""
        if self.awaited:
            self.awaited, self.refusal = 0, message
            self.answered.set(None)

    def pass_on(self, message: bytes) -> None:
        """Write a message; a client that takes nothing is ended, which is not the server's fault."""
        try:
            self.session.client.write(message)
        except OSError:
            self.closed = True
            self.answered.set(None)
            self.session.client.hang_up()

    def close(self) -> None:
        """Listen no more; who waits for an answer waits no more."""
        self.closed = True
        self.answered.set(None)
        with suppress(OSError):  # the server may have ended it already
            self.sock.shutdown(SHUT_RDWR)  # wakes the relay, which then ends

    def _lost(self, fault: Exception) -> BackendError:
        return self.node.error("reset", f"the listening connection is lost: {fault}")

    def _relay(self) -> None:
        try:
            while True:
                data = self.sock.recv(65536)
                if not data:
                    raise ReplyError("it closed the connection")
                for message in self.parser.feed(data):
                    self.hear(self, message)
                    if self.closed:
                        return
        except (OSError, ReplyError) as fault:
            if not self.closed:
                self.answered.set(self._lost(fault))
                self.session.client.hang_up()
        finally:
            self.node.relays.pop(self.sock, None)
            self.sock.close()
