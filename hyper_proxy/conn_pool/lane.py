# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A lane: one pipelined connection to a server, shared by all clients of a worker.

Here is how it comes about and ends; what travels over it is in traffic.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from gevent import spawn

from hyper_proxy.common.errors import BackendError

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.conn_pool.flights import Flights
    from hyper_proxy.conn_pool.traffic import CLOSED, CONNECTING, ENDING, READY, Traffic

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.node import Node

CLOSE_CHECK_S = 0.02  # a lane that must go is looked at so often until it is idle


@cython.cclass
class Lane(Traffic):
    """greeting: what makes the node's storage ready on a new connection (log in, choose the database ...).

    A private lane is one client's for a while: it never connects a second time, since the server has forgotten then
    what was said on it; `dead` is the BackendError that ended it. A patient one waits for an answer without end: some
    commands block.
    """

    def __init__(self, node: Node, greeting: Greeting, private: bool = False) -> None:
        super().__init__(node, private)
        self.greeting = greeting
        self.patient = self.leaving = False
        self.dead: BackendError | None = None

    @property
    def connected_at(self) -> float:
        """When the connection that is open was made: what its server had forgotten by then, it had forgotten before."""
        return self.flights.ready_at

    def stand_for(self, lane: Lane) -> None:
        """In the place of __init__, of a lane without a connection: it hands requests to others, above all to this."""
        node = self.node = lane.node
        self.greeting = lane.greeting
        self.private = self.patient = self.leaving = False
        self.dead = None
        self.state = CLOSED
        self.max_pending_bytes = node.max_pending_bytes
        self.pending = []
        self.pending_bytes = self.sent = self.answered = self.bytes_in = self.bytes_out = 0
        self.flights = Flights(node.latency)

    def distrust(self, detail: str) -> BackendError:
        """An answer did not fit its question, so no other can be trusted: close. Returns the BackendError to tell."""
        if self.sock is not None:
            self.loop.run_callback(self._distrusted, self.sock, detail)
        return self.node.error("protocol", detail)

    def _distrusted(self, sock: object, detail: str) -> None:
        if self.sock is sock:  # several clients may have noticed; the connection after this one is innocent
            self._lost("protocol", detail, True)

    def be_patient(self, patient: bool) -> None:
        """Wait for answers without end, or not; only while nothing is in flight."""
        self.patient = patient
        self.patience.read_s = 0.0 if patient else self.node.read_s
        if self.timer is not None:  # of the request before, under the deadline before
            self.timer.close()
            self.timer = None

    def pass_to(self, node: Node) -> None:
        """Its client keeps it, though its node is replaced: by this one, which is the same server."""
        self.node = node

    def close(self) -> None:
        """Close as soon as nothing is in flight or queued; what still is fails at the read deadline at the latest."""
        self.leaving = True
        if self.patient:
            self.cut()
        elif not self.private:  # a private one goes when its client gives it back
            self.loop.run_callback(self._close_when_idle)

    def cut(self) -> None:
        """Close now; what is in flight fails with the farewell of the node."""
        self.leaving = True
        self.loop.run_callback(self._lost, *self.node.farewell, False)

    def abort(self, kind: str, detail: str) -> None:
        """Close now, or give up to connect; what is in flight fails, and what waits connects again if it may."""
        self.loop.run_callback(self._lost, kind, detail, False)

    def finish(self, kind: str, detail: str, seconds: float) -> None:
        """Close a private lane when what it has sent is answered, in `seconds` at the latest; whatever is not sent yet,
        or comes from now on, fails so. Who waits for others (`patient`) is not waited for."""
        self.leaving = True
        self.loop.run_callback(self._finish, kind, detail, now() + seconds)

    def abandon(self) -> None:
        """Close now; what is in flight fails. For a lane of one client, when that client is gone."""
        self.loop.run_callback(self._lost, "closed", "its client is gone", False)

    # --- the life of the connection

    def _open(self) -> BackendError | None:
        """Begin to connect; None, or the BackendError that says why it is not tried now."""
        error = self.dead or self.node.admit(self.greeting)
        if error is None:
            self.state = CONNECTING
            self.flights.opened_at = now()
            spawn(self._connect)
        return error

    def _connect(self) -> None:
        try:
            sock = self.node.connect(self.greeting, not self.private)
        except BackendError as error:
            self.loop.run_callback(self._refused, error)
        except Exception as error:  # noqa: BLE001  a storage's greeting is foreign code; what waits must be answered
            self.loop.run_callback(self._refused, self.node.error("internal", f"greeting failed: {error!r}"))
        else:
            self.loop.run_callback(self._ready, sock)

    def _refused(self, error: BackendError) -> None:
        """The connection did not come about."""
        self.flights.fail(self._take_back(error), 0, error, False)

    def _take_back(self, error: BackendError) -> list:
        """Who waits for what will not be sent."""
        self.state = CLOSED
        if self.private:
            self._end(error)
        queue, self.queue, self.pending, self.pending_bytes = self.queue, [], [], 0
        self.room.open()
        return queue

    def _ready(self, sock: Any) -> None:
        if self.state != CONNECTING:  # given up in the meantime
            sock.close()
            return
        self.sock = sock
        self.fd = sock.fileno()
        self.reader = self.loop.io(self.fd, 1)
        self.writer = self.loop.io(self.fd, 2)
        self.reader.start(self._on_readable)
        self.state = READY
        self.fresh = True
        self.flights.ready_at = now()
        self.patience.begin(self.flights.ready_at)
        self.flush()
        if self.leaving:  # a request that began before its node was removed has opened it again
            self.close()

    def _close_when_idle(self) -> None:
        if self.sent == self.answered and not self.pending:
            self._lost(*self.node.farewell, False)
            self.node.retire(self)
        else:
            timer = self.loop.timer(CLOSE_CHECK_S)
            timer.start(self._close_when_idle)

    def _finish(self, kind: str, detail: str, until: float) -> None:
        if self.dead is not None:
            return
        if self.state == READY:
            self.state = ENDING
        if self.state != ENDING or self.patient or self.sent == self.answered:
            self._lost(kind, detail, False)
        elif now() >= until:
            self._lost("timeout", "no answer until its keys moved to another server", False)
        else:
            timer = self.loop.timer(CLOSE_CHECK_S)
            timer.start(self._finish, kind, detail, until)

    def _lost(self, kind: str, detail: str, blame: bool) -> None:
        if self.sock is not None:
            for owned in (self.reader, self.writer, self.sock):
                owned.close()
        if self.timer is not None:
            self.timer.close()
        self.reader = self.writer = self.sock = self.timer = self.unsent = None
        self.parser = self.node.parser()
        if self.hold.end():
            self.scheduled = False
        self.fd = -1
        self.state = CLOSED
        self.pending_bytes = sum(map(len, self.pending))
        waiting, head, self.waiting, self.head = self.waiting, self.head, [], 0
        self.answered = self.sent
        # A server may close what has been idle; that is no failure.
        error = self.node.lost(kind, detail, blame and len(waiting) > head)
        if self.private:
            self._end(error)
        refusal = self._open() if self.pending else None
        queue = self._take_back(refusal) if refusal is not None else []
        self.room.open()
        try:
            self.flights.fail(waiting, head, error, True)
        finally:  # behind what was sent: a route hands both on, in this order
            self.flights.fail(queue, 0, refusal or error, refusal in (None, error))

    def _end(self, error: BackendError) -> None:
        self.dead = error
        self.node.retire(self)
