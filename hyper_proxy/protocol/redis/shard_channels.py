"""The shard channels of one client over a redis cluster: each is at the master of its slot, and follows the slot.

A server takes back the channels of a slot that leaves it (SUNSUBSCRIBE, unasked). The client does not hear of that: it
is subscribed at the new home. What is published in between is not heard by anybody, as in the cluster itself.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import gevent
from gevent.lock import BoundedSemaphore

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
    """homes: by channel; None while it is on its way to another server.

    There is one request at a time, of the client or for a channel on its way: so it is known what an answer is for, and
    a channel does not arrive when the client has left it, or has gone.
    """

    def __init__(self, session: RedisSession) -> None:
        self.session = session
        self.links: dict[Node, Link] = {}
        self.homes: dict[bytes, Link | None] = {}
        self.turn = BoundedSemaphore()
        self.asked: tuple[bytes, bytes] | None = None  # word and channel of the request that is under way
        self.returning = False  # is it one that the client knows nothing of?
        self.closed = False

    def join(self, channels: list[bytes]) -> bytes:
        """SSUBSCRIBE. The error that a server answers, or b"". Raises BackendError."""
        with self.turn:
            for channel in channels:
                refusal = self._join(channel)
                if refusal:
                    return refusal
        return b""

    def leave(self, channels: list[bytes]) -> bytes:
        """SUNSUBSCRIBE, of all when none is named. The error that a server answers, or b"". Raises BackendError."""
        with self.turn:
            for channel in channels or list(self.homes) or [b""]:
                link = self.homes.get(channel)
                if link is not None:
                    refusal = self._ask(link, b"sunsubscribe", channel)
                    if refusal:
                        return refusal
                else:
                    self.homes.pop(channel, None)  # whose turn to return comes later: it stays away
                    name = encode.bulk(channel) if channels or channel else encode.null(self.session.resp)
                    self.session.batch.add(self._message(b"sunsubscribe", name))
        return b""

    def close(self) -> None:
        """Listen no more."""
        self.closed = True
        for link in self.links.values():
            link.close()

    def _join(self, channel: bytes) -> bytes:
        storage = self.session.storage
        until = monotonic() + PATIENCE_S
        node: Node | None = None
        while True:
            link = self._link(node or storage.nodes.targets[self.session.locate(channel)].home)
            refusal = self._ask(link, b"ssubscribe", channel)
            if self.closed or not refusal.startswith(PASSING):
                return refusal
            node = storage.moved(link, refusal)
            if monotonic() > until:
                raise link.node.error("unknown", f"channel's slot has no home ({refusal[1:-2].decode()})")
            gevent.sleep(0 if node is not None else PAUSE_S)

    def _link(self, node: Node) -> Link:
        link = self.links.get(node)
        if link is None:
            link = self.links[node] = Link(self.session, node, self._hear)
        return link

    def _ask(self, link: Link, word: bytes, channel: bytes) -> bytes:
        """The error that the server answers, or b"". Raises BackendError."""
        self.asked = word, channel
        try:
            return link.ask(join_words([word, channel]), 1)
        finally:
            self.asked = None
            self._tidy(link)

    def _hear(self, link: Link, message: bytes) -> None:
        if message.startswith(b"-"):
            if not self._is_late(message):
                link.refused(message)
            return
        found = confirmation(message)
        if found is None:
            link.pass_on(message)
            return
        word, channel = found
        if KINDS[word][1]:
            self.homes[channel] = link
        elif found == self.asked:
            self.homes.pop(channel, None)
        else:
            if self.homes.get(channel) is link:
                self.homes[channel] = None
                gevent.spawn(self._return, channel)
                self._tidy(link)
            return
        if not self.returning:
            link.pass_on(self._message(word, encode.bulk(channel)))
        link.confirmed()

    def _is_late(self, message: bytes) -> bool:
        """Is it about a slot that nobody asks for any more?

        A server that takes a channel back while it is asked to says so, and then that the slot is elsewhere.
        """
        if self.asked is None or not message.startswith(b"-MOVED "):
            return False
        return not message.startswith(b"-MOVED %d " % self.session.locate(self.asked[1]))

    def _tidy(self, link: Link) -> None:
        """Close a connection over which nothing is heard any more, so that its end means nothing to the client."""
        if link not in self.homes.values() and not link.awaited:
            link.close()
            self.links.pop(link.node, None)

    def _message(self, word: bytes, name: bytes) -> bytes:
        """A server would count its own channels only."""
        return encode.push([encode.bulk(word), name, encode.integer(len(self.homes))], self.session.resp)

    def _return(self, channel: bytes) -> None:
        """To where its slot is now; a client for whom that is not possible has to begin anew."""
        with self.turn:
            if self.closed or self.homes.get(channel, self) is not None:
                return  # the client has gone, or has left it, or has joined it once more
            self.returning = True
            try:
                refusal = self._join(channel)
            except BackendError:
                refusal = b"-"
            finally:
                self.returning = False
        if self.closed:
            self.close()  # again: it may have a connection more
        elif refusal:
            self.session.client.hang_up()
