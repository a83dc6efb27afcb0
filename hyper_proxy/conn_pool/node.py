"""A node: one storage server as a worker sees it: its address, its lanes, what it has failed at."""

from __future__ import annotations

import random
import socket as plain_socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from errno import EMFILE
from time import monotonic
from typing import Protocol

from gevent import socket

from hyper_proxy.common import log
from hyper_proxy.common.descriptors import EXHAUSTED, RESERVE
from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import OUT_OF_SERVICE, Backoff, Level, Server
from hyper_proxy.conn_pool.dns import Name, UnknownName
from hyper_proxy.conn_pool.flights import CLASSES
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.replies import ReplyError, ReplyParser
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.stats.histogram import Histogram
from hyper_proxy.stats.node import NodeStats

HEARD_BYTES = 40  # of what a server said instead of an answer are shown
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


class Pause:
    """How long not to try again: doubles with each failure in a row; jitter keeps workers from returning together."""

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failures = 0
        self.until = 0.0
        self.reason = ""

    def lengthen(self, reason: str) -> None:
        """After one more failure."""
        delay = min(self.backoff.max_ms, self.backoff.base_ms * 2 ** min(self.failures, 20)) / 1000
        self.failures += 1
        self.until = monotonic() + delay * random.uniform(0.5, 1.0)
        self.reason = reason


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
        self.relays: set[socket.socket] = set()  # connections that clients listen on
        self.told_down: str = before.told_down if before else ""  # the address that the log calls down
        self.closed = False  # is there a successor?
        self.out = server.out  # why it serves nobody: a state of OUT_OF_SERVICE, or ""
        self.retired: Retired = before.retired if before else Retired()
        self.counts: NodeStats = before.counts if before else NodeStats()
        self.standing: Standing | None = None  # where it has a peer in another room

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

    def open_lane(self) -> Lane | None:
        """A shared lane that is connected, if there is one."""
        return next((lane for lane in self.shared.values() if lane.is_open), None)

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

    @property
    def where(self) -> str:
        """The server as errors name it."""
        return self.label if self.label == self.server.address else f"{self.label} ({self.server.address})"

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
                # The same text each time: who collects errors groups them by it.
                return self.error("backoff", f"{pause.reason}; not tried again yet")
        return None

    def connect(self, greeting: Greeting, shared: bool = False) -> socket.socket:
        """A connected, greeted, non-blocking socket, shared by all clients or one client's own. Raises BackendError.

        Only a shared one may take a descriptor of the reserve. The greeting has the read deadline, all of it together:
        it is made of questions, as any request is.
        """
        sock = self.reach(shared)
        conversation = _Conversation(sock, self.parser(), self.read_s)
        try:
            greeting.greet(conversation.ask)
            conversation.end()
        except ReplyError as error:
            sock.close()
            pause = self.refusals.setdefault(greeting, Pause(self.backoff))
            heard = f" (it sent {conversation.heard[:HEARD_BYTES]!r})" if conversation.heard else ""
            raise self._put_off(pause, "protocol", f"greeting failed: {error}{heard}") from error
        except OSError as error:
            sock.close()
            if isinstance(error, TimeoutError):
                detail = f"connected, but it did not answer within {round(self.read_s * 1000)} ms"
                raise self._put_off(self.pause, "timeout", detail) from error
            raise self._put_off(self.pause, "reset", f"greeting failed: {error.strerror or error}") from error
        self.refusals.pop(greeting, None)
        self.counts.connects += 1
        return sock

    def reach(self, shared: bool) -> socket.socket:
        """A connected socket on which nothing has been said. Raises BackendError."""
        try:
            sock = self._dial(monotonic() + self.connect_s)
            if not shared and RESERVE.holds(sock.fileno()):
                sock.close()
                raise OSError(EMFILE, "the descriptors left are kept for connections that clients share")
        except OSError as error:
            if error.errno in EXHAUSTED:  # not the server's fault
                raise self.error("exhausted", f"no connection: {error.strerror}") from error
            self.name.doubt()
            raise self._put_off(self.pause, _kind(error), f"no connection: {error.strerror or error}") from error
        return sock

    def probe(self) -> None:
        """Ask whether it is back, on one connection; what comes of that is told by `proved` or `_put_off`."""
        self.shared or self.lane(self.greeting)  # after a reload nobody may have asked for one yet
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

    def lost(self, kind: str, detail: str, blame: bool) -> BackendError:
        """A connection has ended; with `blame` the server is given a pause before the next one."""
        if not blame:
            return self._say(kind, detail)
        return self._put_off(self.pause, kind, detail)

    @property
    def farewell(self) -> tuple[str, str]:
        """Kind and text of the error for those whose connections end with this node."""
        return (self.out, OUT_OF_SERVICE[self.out]) if self.out else ("closed", "removed from the configuration")

    def close(self, out: str = "") -> None:
        """Close every lane once it is idle; `out` says that the server stays, out of service: see OUT_OF_SERVICE."""
        self.out = out
        self.closed = True
        for lane in list(self.lanes):
            if out == "maintenance":
                lane.cut()
            elif lane.node is self:
                lane.close()
        for sock in self.relays:
            with suppress(OSError):  # its server may have ended it already
                sock.shutdown(plain_socket.SHUT_RDWR)

    def _dial(self, deadline: float) -> socket.socket:
        """Connected to the first of the addresses that accepts."""
        if self.server.path:
            return _connected(socket.AF_UNIX, self.server.path, deadline)
        addresses = self.name.resolve(deadline - monotonic())
        for index, ip in enumerate(addresses[:-1]):
            share = _left(deadline) / (len(addresses) - index)  # an address that hangs leaves time for the next
            with suppress(OSError):
                return self._dial_ip(ip, monotonic() + share)
        return self._dial_ip(addresses[-1], deadline)

    def _dial_ip(self, ip: str, deadline: float) -> socket.socket:
        sock = _connected(socket.AF_INET6 if ":" in ip else socket.AF_INET, (ip, self.server.port), deadline)
        sock.setsockopt(socket.IPPROTO_TCP, plain_socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, plain_socket.SO_KEEPALIVE, 1)
        return sock

    def _put_off(self, pause: Pause, kind: str, detail: str) -> BackendError:
        if self.told_down != self.server.address:
            self.told_down = self.server.address
            where = {"instance": self.instance, "node": self.label, "address": self.server.address}
            log.warning("node.down", **where, kind=kind, why=detail)
        pause.lengthen(detail)
        return self.error(kind, detail)


def _kind(error: OSError) -> str:
    """Why there is no connection."""
    if isinstance(error, UnknownName):
        return "dns"
    return "timeout" if isinstance(error, TimeoutError) else "refused"


def _connected(family: int, address: object, deadline: float) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(_left(deadline))
        sock.connect(address)
    except TimeoutError:
        if not _is_connected(sock):
            sock.close()
            raise
    except OSError:
        sock.close()
        raise
    return sock


def _is_connected(sock: socket.socket) -> bool:
    """A last look: was it the worker itself that had no time?"""
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def _left(deadline: float) -> float:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class _Conversation:
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
        self.sock.settimeout(_left(self.deadline))
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
            self.sock.settimeout(_left(self.deadline))
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
