"""The shard channels of one client over a redis cluster: each is at the master of its slot, and follows the slot.

A server takes back the channels of a slot that leaves it (SUNSUBSCRIBE, unasked). The client does not hear of that: it
is subscribed at the new home. What is published in between is not heard by anybody, as in the cluster itself.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common.errors import BackendError
from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis.framing import join_words
from hyper_proxy.protocol.redis.listening import KINDS, Link, confirmation

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.node import Node
    from hyper_proxy.protocol.redis.session import RedisSession

PATIENCE_S = 1.0  # in which a slot must have a home again
PAUSE_S = 0.02
PASSING = (b"-MOVED ", b"-CLUSTERDOWN ", b"-LOADING ", b"-TRYAGAIN ")


class ShardChannels:
    """homes: by channel; None while it is on its way to another server."""

    def __init__(self, session: RedisSession) -> None:
        self.session = session
        self.links: dict[Node, Link] = {}  # the latest one to each server
        self.open: set[Link] = set()
        self.homes: dict[bytes, Link | None] = {}

    def join(self, channels: list[bytes]) -> bytes:
        """SSUBSCRIBE. The error that a server answers, or b"". Raises BackendError."""
        for channel in channels:
            refusal = self._join(channel)
            if refusal:
                return refusal
        return b""

    def leave(self, channels: list[bytes]) -> bytes:
        """SUNSUBSCRIBE, of all when none is named."""
        for channel in channels or list(self.homes) or [b""]:
            link = self.homes.get(channel)
            if link is not None:
                link.ask(join_words([b"SUNSUBSCRIBE", channel]), 1)
                self._tidy(link)
            else:
                self.homes.pop(channel, None)
                name = encode.bulk(channel) if channels or channel else encode.null(self.session.resp)
                self.session.batch.add(self._message(b"sunsubscribe", name))
        return b""

    def close(self) -> None:
        """Listen no more."""
        for link in self.open:
            link.close()

    def _join(self, channel: bytes) -> bytes:
        storage = self.session.storage
        until = monotonic() + PATIENCE_S
        node: Node | None = None
        while True:
            link = self._link(node or storage.nodes.targets[self.session.locate(channel)].home)
            refusal = link.ask(join_words([b"SSUBSCRIBE", channel]), 1)
            self._tidy(link)
            if not refusal.startswith(PASSING):
                return refusal
            node = storage.moved(link, refusal)
            if monotonic() > until:
                raise link.node.error("unknown", f"channel's slot has no home ({refusal[1:-2].decode()})")
            gevent.sleep(0 if node is not None else PAUSE_S)

    def _link(self, node: Node) -> Link:
        link = self.links.get(node)
        if link is None or link.closed:
            link = self.links[node] = Link(self.session, node, self._hear)
            self.open.add(link)
        return link

    def _hear(self, link: Link, message: bytes) -> None:
        if message.startswith(b"-"):
            link.refused(message)
            return
        found = confirmation(message)
        if found is None:
            link.pass_on(message)
            return
        word, channel = found
        joined = KINDS[word][1]
        returned = joined and channel in self.homes and self.homes[channel] is None
        if joined:
            self.homes[channel] = link
        elif link.awaited:
            self.homes.pop(channel, None)
        elif self.homes.get(channel) is link:
            self.homes[channel] = None
            gevent.spawn(self._return, channel)
            self._tidy(link)
            return
        if not returned:
            link.pass_on(self._message(word, encode.bulk(channel)))
        link.confirmed()

    def _tidy(self, link: Link) -> None:
        """Close a connection over which nothing is heard any more, so that its end means nothing to the client."""
        if link not in self.homes.values() and not link.wanted:
            link.close()
            self.open.discard(link)

    def _message(self, word: bytes, name: bytes) -> bytes:
        """A server would count its own channels only."""
        return encode.push([encode.bulk(word), name, encode.integer(len(self.homes))], self.session.resp)

    def _return(self, channel: bytes) -> None:
        """To where its slot is now; a client for whom that is not possible has to begin anew."""
        try:
            refusal = self._join(channel)
        except BackendError:
            refusal = b"-"
        if refusal:
            self.session.client.hang_up()
