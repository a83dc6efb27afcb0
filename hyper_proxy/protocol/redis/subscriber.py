"""A client that listens to channels: its own connection to one node, relayed both ways.

PUBLISH goes to every node, so a listener needs only one; which one depends on the client, so listeners spread.
"""

from __future__ import annotations

from contextlib import suppress
from socket import SHUT_RDWR
from typing import TYPE_CHECKING

import gevent
from gevent.event import AsyncResult

from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.protocol.redis import encode, reducers
from hyper_proxy.protocol.redis.command import SUBSCRIBE

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.session import RedisSession

RESP3 = 3
ALWAYS = frozenset({b"ping", b"quit", b"reset"})
KINDS = {
    b"subscribe": (b"channel", True), b"unsubscribe": (b"channel", False),
    b"psubscribe": (b"pattern", True), b"punsubscribe": (b"pattern", False),
    b"ssubscribe": (b"shard", True), b"sunsubscribe": (b"shard", False),
}  # fmt: skip


class Subscriber:
    """From the first SUBSCRIBE until nothing is listened to any more."""

    def __init__(self, session: RedisSession) -> None:
        self.session = session
        self.node = session.storage.nodes.homes[session.sequence % len(session.storage.nodes.homes)].home
        self.sock = self.node.connect(session.storage.greeting(0, session.resp))
        self.sock.settimeout(None)
        self.node.relays.add(self.sock)
        self.parser = self.node.parser()
        self.names: dict[bytes, set[bytes]] = {b"channel": set(), b"pattern": set(), b"shard": set()}
        self.awaited = 0
        self.closed = False
        self.answered: AsyncResult = AsyncResult()
        session.client.share()
        self.relay = gevent.spawn(self._relay)

    def permits(self, row: Command) -> bool:
        """In RESP2 a listener may do little else; in RESP3 everything."""
        return self.session.resp == RESP3 or row.treatment == SUBSCRIBE or row.name in ALWAYS

    def forward(self, row: Command, raw: bytes, argv: list[bytes]) -> None:
        """Pass a (un)subscription on and wait until the server has confirmed all of it. Raises BackendError."""
        kind, _ = KINDS[row.name]
        self.awaited = len(argv) - 1 or max(1, len(self.names[kind]))
        self.answered = AsyncResult()
        self.sock.sendall(raw)
        self.answered.wait(self.node.read_s)
        if not self.answered.ready():
            raise self.node.error("timeout", f"no answer within {round(self.node.read_s * 1000)} ms")
        if self.answered.value is not None:
            raise self.answered.value
        if not any(self.names.values()):
            self.close()
            self.session.subscriber = None
            self.session.refresh()

    def answer(self, row: Command, argv: list[bytes]) -> bytes | None:
        """PING of a RESP2 listener is answered in the form of a message; None for anything else."""
        if row.name != b"ping" or self.session.resp == RESP3:
            return None
        return encode.array([encode.bulk("pong"), encode.bulk(argv[1] if len(argv) > 1 else b"")])

    def close(self) -> None:
        """Listen no more."""
        self.closed = True
        with suppress(OSError):  # the server may have ended it already
            self.sock.shutdown(SHUT_RDWR)  # wakes the relay, which then ends

    def _relay(self) -> None:
        client = self.session.client
        try:
            while True:
                data = self.sock.recv(65536)
                if not data:
                    raise ReplyError("it closed the connection")
                for message in self.parser.feed(data):
                    if not self._pass_on(message):
                        return
                    self._note(message)
        except (OSError, ReplyError) as fault:
            if not self.closed:
                self.answered.set(self.node.error("reset", f"the listening connection is lost: {fault}"))
                client.hang_up()
        finally:
            self.node.relays.discard(self.sock)
            self.sock.close()

    def _pass_on(self, message: bytes) -> bool:
        """Write a message; a client that takes nothing is ended, which is not the server's fault."""
        try:
            self.session.client.write(message)
        except OSError:
            self.closed = True
            self.answered.set(None)
            self.session.client.hang_up()
        return not self.closed

    def _note(self, message: bytes) -> None:
        """Follow the confirmations among the messages."""
        if message.startswith(b"-"):
            self.awaited = 0
            self.answered.set(None)
            return
        words = reducers.parse(b"*" + message[1:] if message.startswith(b">") else message)
        if not isinstance(words, list) or not words or words[0] not in KINDS:
            return
        kind, joined = KINDS[words[0]]
        if joined:
            self.names[kind].add(words[1])
        else:
            self.names[kind].discard(words[1])
        self.awaited -= 1
        if self.awaited == 0:
            self.answered.set(None)
