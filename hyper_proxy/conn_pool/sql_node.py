# cython: language_level=3, annotation_typing=False
"""A SQL server as a worker sees it: a node whose connections carry one request each, and the pool of them.

    take:  an idle connection, the last that was used    ->  or a new one, while there are fewer than max_connections
           and the server has no pause                   ->  or the first that is given back, within queue_ms

A slow statement is not the server's fault: only a connection or login that fails gives it a pause. So one locked row
fails the requests for that row, and a server that hangs is found out by the first new connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast

import gevent
from gevent.event import AsyncResult

from hyper_proxy.common import witness
from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import OUT_OF_SERVICE, Level, Server
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.replies import ReplyParser
from hyper_proxy.conn_pool.sql_connection import SqlConnection
from hyper_proxy.conn_pool.sql_error import SqlError
from hyper_proxy.conn_pool.sql_lag import Ask, Lag
from hyper_proxy.conn_pool.sql_wire import Wire
from hyper_proxy.stats.classes import CLASSES

IDLE_S = 60.0  # a connection that nobody has needed for so long is closed


@dataclass(frozen=True, slots=True)
class Login:
    """All connections of a node are alike; PyMySQL does the talking."""

    probe = b""

    def greet(self, ask: Callable[[bytes], bytes]) -> None:
        """Nothing is said by question and answer of our own."""


LOGIN = Login()


class SqlNode(Node):
    """One SQL server of one instance, for one user and database."""

    def __init__(self, instance: str, level: Level, server: Server, before: SqlNode | None = None) -> None:
        super().__init__(instance, level, server, ReplyParser, LOGIN, before)  # which parses nothing: the driver does
        self.username = level.username
        self.password = level.password
        self.database = level.database
        self.pool = Pool(self, level.max_connections)
        self.lanes.add(cast(Any, self.pool))
        self.lag: Lag | None = None

    def watch_lag(self, max_lag_s: float, beat: Ask | None = None) -> None:
        """It only reads, and must not be further behind its writer; from now on. beat: says how far it is."""
        if self.lag is None:
            self.lag = Lag(self, max_lag_s, beat)
            gevent.spawn(self.lag.run)

    @property
    def is_late(self) -> bool:
        """Must it not be read from, since it is too far behind its writer?"""
        return self.lag is not None and self.lag.is_late

    @property
    def lag_s(self) -> float:
        return self.lag.seconds if self.lag else 0.0

    @property
    def queue_ms(self) -> int:
        """How long a request waits for a connection."""
        return round(self.queue_s * 1000)

    @property
    def is_down(self) -> bool:
        """A login that fails says little while other connections serve: the server may have no more of them."""
        return bool(self.told_down) and not self.pool.is_open

    def probe(self) -> None:
        gevent.spawn(self._probe)

    def _probe(self) -> None:
        with suppress(BackendError), self.pool.connection():
            pass

    def open_connection(self) -> SqlConnection:
        """A new connection that is logged in. Raises BackendError, and gives the server a pause then."""
        wire = Wire(self.reach(True))
        try:
            connection = SqlConnection(self, wire)
        except SqlError as error:
            wire.close()
            raise self._put_off(self.pause, error.kind, f"login failed: {error.detail}") from error
        except BaseException:
            wire.close()
            raise
        self.counts.connects += 1
        self.proved()
        return connection


class Pool:
    """The connections of one node. It counts as its only lane: the same figures, for all connections together."""

    private = False
    pending_bytes = 0  # requests wait in their clients' greenlets, not here

    def __init__(self, node: SqlNode, size: int) -> None:
        self.node = node
        self.size = size
        self.sent = 0
        self.by_class = [0] * len(CLASSES)
        self.idle: list[SqlConnection] = []  # the last one used is the last
        self.lent: set[SqlConnection] = set()
        self.dialling = 0
        self.waiters: deque[AsyncResult] = deque()
        self.closed = False
        self._bytes_in = 0
        self._bytes_out = 0

    @contextmanager
    def connection(self) -> Iterator[SqlConnection]:
        """A connection for one request; whatever happens, it is given back or closed. Raises BackendError."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self) -> SqlConnection:
        """The same for who gives it back himself. Raises BackendError."""
        witness.note(self.node.label)
        if self.node.out:
            raise self.node.error(self.node.out, OUT_OF_SERVICE[self.node.out])
        return self._take_idle() or self._take()

    # ---- figures, as of a lane

    @property
    def flights(self) -> Pool:
        """What counts by class."""
        return self

    def counts(self) -> list[int]:
        """Statements by class."""
        return list(self.by_class)

    @property
    def bytes_in(self) -> int:
        return self._bytes_in + sum(one.bytes_in for one in (*self.idle, *self.lent))

    @property
    def bytes_out(self) -> int:
        return self._bytes_out + sum(one.bytes_out for one in (*self.idle, *self.lent))

    @property
    def in_flight(self) -> int:
        return len(self.lent)

    @property
    def queued(self) -> int:
        return len(self.waiters)

    @property
    def is_open(self) -> int:
        """Connections that are open."""
        return len(self.idle) + len(self.lent)

    # ---- the end

    def close(self) -> None:
        """Take on nothing more; what is lent may finish."""
        self.closed = True
        for connection in self.idle:
            self._discard(connection)
        self.idle.clear()
        self._maybe_retire()

    def cut(self) -> None:
        """End what is lent, too."""
        for connection in self.lent:
            connection.cut()
        self.close()

    def _maybe_retire(self) -> None:
        if self.closed and not self.lent and not self.dialling:
            self.node.retire(cast(Any, self))

    # ---- taking and giving back

    def _take(self) -> SqlConnection:
        node = self.node
        deadline = monotonic() + node.queue_s
        try:
            while True:
                connection = self._take_idle()
                if connection is not None:
                    return connection
                if self.is_open + self.dialling < self.size and not node.is_backing_off:
                    try:
                        return self._dial()
                    except BackendError:
                        if self.idle:
                            continue  # one has come back meanwhile
                        if not self.lent:
                            raise
                elif not self.lent and not self.dialling and (error := node.admit(LOGIN)) is not None:
                    raise error
                connection = self._wait(deadline)
                if connection is not None:
                    return connection
        except BackendError:
            self._wake()  # who was woken for nothing wakes the next
            raise

    def _take_idle(self) -> SqlConnection | None:
        while self.idle:
            connection = self.idle.pop()
            if connection.line.is_quiet():
                self.lent.add(connection)
                return connection
            self._discard(connection)
        return None

    def _dial(self) -> SqlConnection:
        self.dialling += 1
        try:
            connection = self.node.open_connection()
        finally:
            self.dialling -= 1
            self._maybe_retire()
        self.lent.add(connection)
        return connection

    def _wait(self, deadline: float) -> SqlConnection | None:
        """The connection that someone gives back; None when there is room for a new one. Raises BackendError."""
        waiter = AsyncResult()
        self.waiters.append(waiter)
        try:
            waiter.wait(max(deadline - monotonic(), 0.001))
        except BaseException:
            if waiter.ready() and waiter.value is not None:
                self.give_back(waiter.value)
            raise
        finally:
            if not waiter.ready():
                self.waiters.remove(waiter)
        if not waiter.ready():
            node = self.node
            raise node.error("queue", f"all {self.size} connections were in use for {node.queue_ms} ms")
        return cast("SqlConnection | None", waiter.value)

    def _wake(self, connection: SqlConnection | None = None) -> bool:
        """Hand a connection, or the word that there is room for one, to who has waited longest."""
        if not self.waiters:
            return False
        self.waiters.popleft().set(connection)
        return True

    def give_back(self, connection: SqlConnection) -> None:
        """Another request may have it, if the last one has left it clean."""
        if self.closed or not connection.is_clean:
            self.lent.remove(connection)
            self._discard(connection)
            self._wake()
            self._maybe_retire()
            return
        if self._wake(connection):
            return  # it stays lent, to another
        self.lent.remove(connection)
        connection.idle_since = now = monotonic()
        self.idle.append(connection)
        if self.idle[0].idle_since < now - IDLE_S:
            self._discard(self.idle.pop(0))

    def _discard(self, connection: SqlConnection) -> None:
        self._bytes_in += connection.bytes_in
        self._bytes_out += connection.bytes_out
        connection.close()
