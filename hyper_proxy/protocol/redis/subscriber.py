"""A client that listens to channels: its own connection to one node, relayed both ways.

PUBLISH goes to every node, so a listener needs only one; which one depends on the client, so listeners spread. Only the
shard channels of a cluster are each at a server of their own (shard_channels.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyper_proxy.protocol.redis import encode, wording
from hyper_proxy.protocol.redis.command import SUBSCRIBE
from hyper_proxy.protocol.redis.listening import KINDS, Link, confirmation
from hyper_proxy.protocol.redis.shard_channels import ShardChannels

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.session import RedisSession

RESP3 = 3
ALWAYS = frozenset({b"ping", b"quit", b"reset"})


class Subscriber:
    """From the first SUBSCRIBE until nothing is listened to any more."""

    def __init__(self, session: RedisSession) -> None:
        self.session = session
        self.link: Link | None = None
        self.shards = ShardChannels(session) if session.storage.follows else None
        self.names: dict[bytes, set[bytes]] = {b"channel": set(), b"pattern": set(), b"shard": set()}
        session.client.share()

    def permits(self, row: Command) -> bool:
        """In RESP2 a listener may do little else; in RESP3 everything."""
        return self.session.resp == RESP3 or row.treatment == SUBSCRIBE or row.name in ALWAYS

    def forward(self, row: Command, raw: bytes, argv: list[bytes]) -> None:
        """Pass a (un)subscription on and wait until the server has confirmed all of it. Raises BackendError."""
        kind, joins = KINDS[row.name]
        try:
            if self.shards is not None and kind == b"shard":
                refusal = self.shards.join(argv[1:]) if joins else self.shards.leave(argv[1:])
                if refusal:
                    self.session.batch.add(refusal)
            else:
                if self.link is None:
                    homes = self.session.storage.nodes.homes
                    node = homes[self.session.sequence % len(homes)].home
                    self.link = Link(self.session, node, self._hear)
                self.link.ask(raw, len(argv) - 1 or max(1, len(self.names[kind])))
        finally:
            if not any(self.names.values()) and not (self.shards and self.shards.homes):
                self.close()
                self.session.subscriber = None
                self.session.refresh()

    def answer(self, row: Command, argv: list[bytes]) -> bytes | None:
        """PING of a RESP2 listener is answered in the form of a message; None for anything else. Raises ErrorReply."""
        if row.name != b"ping" or self.session.resp == RESP3:
            return None
        if len(argv) > 2:
            raise wording.ErrorReply(wording.wrong_arity(row))
        return encode.array([encode.bulk("pong"), encode.bulk(argv[1] if len(argv) > 1 else b"")])

    def close(self) -> None:
        """Listen no more."""
        if self.link is not None:
            self.link.close()
        if self.shards is not None:
            self.shards.close()

    def _hear(self, link: Link, message: bytes) -> None:
        """Pass a message on, and follow the confirmations among them."""
        link.pass_on(message)
        if message.startswith(b"-"):
            link.refused(message)
            return
        found = confirmation(message)
        if found is not None:
            kind, joined = KINDS[found[0]]
            (self.names[kind].add if joined else self.names[kind].discard)(found[1])
            link.confirmed()
