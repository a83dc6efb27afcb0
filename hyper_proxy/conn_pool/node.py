"""A node: one storage server as a worker sees it: its address, its lanes, what it has failed at."""

from __future__ import annotations

import socket as plain_socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from errno import EMFILE
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from gevent import socket

from hyper_proxy.common import log
from hyper_proxy.common.descriptors import EXHAUSTED, RESERVE
from hyper_proxy.common.errors import BackendError, NoDatabase
from hyper_proxy.config.model import OUT_OF_SERVICE, Level, Server
from hyper_proxy.conn_pool.dial import dial, kind_of
from hyper_proxy.conn_pool.dns import Name
from hyper_proxy.conn_pool.flights import CLASSES
from hyper_proxy.conn_pool.greeting import Conversation, Greeting
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.pause import SPOKEN, Pause
from hyper_proxy.conn_pool.replies import ReplyError, ReplyParser
from hyper_proxy.conn_pool.reply_error import NotSelected
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.stats.histogram import Histogram
from hyper_proxy.stats.node import NodeStats

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.target import Target

HEARD_BYTES = 40  # of what a server said instead of an answer are shown


class Retired:
    """Counts of lanes that have ended."""

    def __init__(self) -> None:
        self.requests = 0
        self.by_class = [0] * CLASSES
        self.bytes_in = 0
        self.bytes_out = 0


class Standing(Protocol):
    """What a node with a peer in another room is just now (hyper_proxy/conn_pool/rooms)."""

    @property
    def serves(self) -> bool:
        """Do requests go to it?"""
        ...

    @property
    def is_behind(self) -> bool:
        """Has it missed something?"""
        ...

    @property
    def missed(self) -> int:
        """Keys in the journal of what it has missed, of this worker."""
        ...

    def meet(self, ask: Callable[[bytes], bytes]) -> None:
        """Find out which process the server is, on a new connection to it: its peer may serve from then on."""
        ...


class Node:
    """One server of one instance. `label` names it in errors and statistics.

    before: the node of the same label in the configuration before; its counts go on.
    """

    def __init__(
        self,
        instance: str,
        level: Level,
        server: Server,
        parser: type[ReplyParser],
        greeting: Greeting,
        before: Node | None = None,
    ) -> None:
        self.instance = instance
        self.server = server
        self.label = server.label
        self.parser = parser
        self.greeting = greeting  # of a client that has said nothing special
        self.latency: Histogram = before.latency if before else Histogram()  # from the send of a request to its reply
        self.read_s = level.timeout.read_ms / 1000
        self.connect_s = level.timeout.connect_ms / 1000
        self.queue_s = level.timeout.queue_ms / 1000
        self.max_pending_bytes = level.max_pending_bytes
        self.backoff = level.backoff
        self.name = Name(server.host, level.dns_ttl_s)
        self.pause = Pause(level.backoff)
        self.refusals: dict[Greeting, Pause] = {}  # greetings the server did not like: others may still work
        self.errors: Counter[str] = before.errors if before else Counter()
        self.shared: dict[tuple[Greeting, int], Lane] = {}
        # The shared and the private ones, those of the node before included until they end.
        self.lanes: set[Lane] = before.lanes if before else set()
        # Connections that clients listen on, each with the node whose it is now.
        self.relays: dict[socket.socket, Node] = before.relays if before else {}
        self.told_down: str = before.told_down if before else ""  # the address that the log calls down
        self.closed = False  # is there a successor?
        self.gone = False  # has the successor another server, or is there none?
        self.out = server.out  # why it serves nobody: a state of OUT_OF_SERVICE, or ""
        self.retired: Retired = before.retired if before else Retired()
        self.counts: NodeStats = before.counts if before else NodeStats()
        self.standings: list[Standing] = []  # where it has a peer in another room: of each configuration that says so

    @property
    def standing(self) -> Standing | None:
        """Of the newest configuration."""
        return self.standings[-1] if self.standings else None

    @property
    def is_late(self) -> bool:
        """Is it not read from, since it is too far behind the server that it is a copy of?"""
        return False

    @property
    def lag_s(self) -> float:
        """How far it is, in seconds."""
        return 0.0

    @property
    def home(self) -> Node:
        """Itself: see hyper_proxy/conn_pool/target.py."""
        return self

    def lane(self, greeting: Greeting, index: int = 0) -> Lane:
        """The shared lane number `index` for this greeting; made when first asked for."""
        lane = self.shared.get((greeting, index))
        if lane is None:
            lane = self.shared[greeting, index] = Lane(self, greeting)
            self.lanes.add(lane)
            if self.closed:  # for a request that began before; it ends as the others have
                lane.close()
        return lane

    @property
    def places(self) -> list[Target]:
        """As those of a Target: this server."""
        return [self]

    def open_lanes(self) -> list[Lane]:
        """A shared lane that is connected, if there is one."""
        return [lane for lane in self.shared.values() if lane.is_open][:1]

    def private_lane(self, greeting: Greeting) -> Lane:
        """A lane of its own for one client."""
        lane = Lane(self, greeting, True)
        self.lanes.add(lane)
        return lane

    def retire(self, lane: Lane) -> None:
        """A lane has ended for good: keep its counts."""
        if lane in self.lanes:
            self.lanes.remove(lane)
            self.retired.requests += lane.sent
            counts = lane.flights.counts()
            self.retired.by_class = [old + new for old, new in zip(self.retired.by_class, counts, strict=True)]
            self.retired.bytes_in += lane.bytes_in
            self.retired.bytes_out += lane.bytes_out

    @property
    def is_backing_off(self) -> bool:
        """Is it not tried just now, because it failed?"""
        return self.pause.until > monotonic()

    @property
    def is_down(self) -> bool:
        """Has the last attempt failed, and no new connection answered since? Also when the back-off is over.

        A greeting that was refused says little while others work.
        """
        return bool(self.told_down) and (self.pause.failures > 0 or not any(lane.is_open for lane in self.lanes))

    def error(self, kind: str, detail: str) -> BackendError:
        """Count a failure and say it."""
        self.errors[kind] += 1
        return self._say(kind, detail)

    def unread(self) -> BackendError:
        """For a reply that the proxy had no memory for: the server has not failed, so nothing is counted."""
        return self._say("memory", "the reply is dropped: the proxy has no memory for it ([proxy] max_memory)")

    @property
    def where(self) -> str:
        """The server as errors name it."""
        return self.server.where

    def _say(self, kind: str, detail: str) -> BackendError:
        return BackendError(self.instance, self.where, kind, detail)

    def busy(self) -> BackendError:
        """A lane is full, and was not waited for, or in vain."""
        return self.error("busy", f"more than {self.max_pending_bytes} bytes are waiting to be sent to it")

    def admit(self, greeting: Greeting) -> BackendError | None:
        """May a connection be tried now? Not if an operator has said no; after a failure when the back-off is over."""
        if self.out:
            return self.error(self.out, OUT_OF_SERVICE[self.out])
        for pause in (self.pause, self.refusals.get(greeting)):
            if pause is not None and pause.until > monotonic():
                if pause.kind == NotSelected.kind:
                    return NoDatabase(self.instance, self.where, pause.reason)
                # The same text each time: who collects errors groups them by it.
                error = self.error(pause.kind, f"{pause.reason}; not tried again yet")
                error.untried = True
                return error
        return None

    def connect(self, greeting: Greeting, shared: bool = False) -> socket.socket:
        """A connected, greeted, non-blocking socket, shared by all clients or one client's own. Raises BackendError.

        Only a shared one may take a descriptor of the reserve. The greeting has the read deadline, all of it together:
        it is made of questions, as any request is.
        """
        standing = self.standing
        serves = standing is not None and standing.serves
        sock = self.reach(shared)
        conversation = Conversation(sock, self.parser(), self.read_s)
        try:
            greeting.greet(conversation.ask)
            if standing is not None:
                standing.meet(conversation.ask)
            conversation.end()
        except NotSelected as error:
            sock.close()
            self.refusals.setdefault(greeting, Pause(self.backoff)).lengthen(error.said, error.kind)
            raise NoDatabase(self.instance, self.where, error.said) from error
        except ReplyError as error:
            sock.close()
            pause = self.refusals.setdefault(greeting, Pause(self.backoff))
            heard = f" (it sent {conversation.heard[:HEARD_BYTES]!r})" if conversation.heard else ""
            detail = str(error) if error.whole else f"greeting failed: {error}{heard}"
            raise self._put_off(pause, error.kind, detail) from error
        except OSError as error:
            sock.close()
            if isinstance(error, TimeoutError):
                detail = f"connected, but it did not answer within {round(self.read_s * 1000)} ms"
                raise self._put_off(self.pause, "timeout", detail) from error
            raise self._put_off(self.pause, "reset", f"greeting failed: {error.strerror or error}") from error
        self.refusals.pop(greeting, None)
        self.counts.connects += 1
        if serves and standing is not None and not standing.serves:
            sock.close()  # what waits for it is for the one that serves now
            raise self.error("room", "the other room serves in its place")
        return sock

    def reach(self, shared: bool) -> socket.socket:
        """A connected socket on which nothing has been said. Raises BackendError."""
        try:
            sock = dial(self.server, self.name, self.connect_s)
            if not shared and RESERVE.holds(sock.fileno()):
                sock.close()
                raise OSError(EMFILE, "the descriptors left are kept for connections that clients share")
        except OSError as error:
            if error.errno in EXHAUSTED:  # not the server's fault
                raise self.error("exhausted", f"no connection: {error.strerror}") from error
            self.name.doubt()
            raise self._put_off(self.pause, kind_of(error), f"no connection: {error.strerror or error}") from error
        return sock

    def probe(self) -> None:
        """Ask whether it is back, on one connection; what comes of that is told by `proved` or `_put_off`."""
        if all(greeting in self.refusals for greeting, _ in self.shared):  # or nobody has asked for one yet
            self.lane(self.greeting)
        closed = [lane for lane in self.shared.values() if not lane.is_open and not lane.queued]
        for lane in sorted(closed, key=lambda lane: lane.greeting in self.refusals):  # another one may be welcome
            refusal = self.refusals.get(lane.greeting)
            if refusal is None or refusal.until <= monotonic():
                lane.submit(lane.greeting.probe, ADMIN, None, 0)
                return

    def proved(self) -> None:
        """A new connection has answered its first request: only now is it known that the server is well."""
        if self.told_down:
            log.info("node.up", instance=self.instance, node=self.label, address=self.server.address)
            self.told_down = ""
        if self.pause.failures:
            self.pause = Pause(self.backoff)
        for greeting, pause in list(self.refusals.items()):
            if pause.kind in SPOKEN:  # it has loaded, whoever asks; and may have been started with more databases
                del self.refusals[greeting]

    def lost(self, kind: str, detail: str, blame: bool) -> BackendError:
        """A connection has ended; with `blame` the server is given a pause before the next one."""
        if not blame:
            return self._say(kind, detail)
        return self._put_off(self.pause, kind, detail)

    @property
    def farewell(self) -> tuple[str, str]:
        """Kind and text of the error for those whose connections end with this node."""
        return (self.out, OUT_OF_SERVICE[self.out]) if self.out else ("closed", "removed from the configuration")

    def close(self, heir: Node | None = None) -> None:
        """Close every lane once it is idle; heir: the node that has its place from now on. Is that the same server in
        the same service, clients that have a connection of their own to it keep it, and it is the heir's."""
        self.out = out = heir.out if heir else ""
        self.closed = True
        self.gone = not heir or (heir.where, heir.greeting) != (self.where, self.greeting)
        same = None if self.gone else heir
        for lane in list(self.lanes):
            if out == "maintenance":
                lane.cut()
            elif lane.node is not self:
                continue
            elif same and lane.private and not (out and lane.patient):
                lane.pass_to(same)
            else:
                lane.close()
        for sock, owner in list(self.relays.items()):
            if owner is self and same and not out:
                self.relays[sock] = same
            elif owner is self:
                with suppress(OSError):  # its server may have ended it already
                    sock.shutdown(plain_socket.SHUT_RDWR)

    def _put_off(self, pause: Pause, kind: str, detail: str) -> BackendError:
        if self.told_down != self.server.address:
            self.told_down = self.server.address
            where = {"instance": self.instance, "node": self.label, "address": self.server.address}
            log.warning("node.down", **where, kind=kind, why=detail)
        pause.lengthen(detail, kind)
        return self.error(kind, detail)
