# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What travels over the connection of a lane: requests out, replies in, and the deadline between them.

Double buffer: callers append to `pending`; once per turn of the event loop `flush` swaps it for an empty list and
sends it in one system call, so concurrent clients share the call. Replies are matched in order to who waits for them.

    pending + queue   accepted, not sent: survive the loss of the connection and leave on the next one
    waiting           sent: fail when the connection is lost, for nobody can tell what the server has done

A new connection has to answer one request alone before it gets the others: a server that answers too much shows itself
while there is nobody yet to whom the surplus could go.

Everything here but `submit`, `is_full` and `wait_for_room` runs in the hub, so nothing can be interrupted half way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from gevent import get_hub

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.flusher import flusher
from hyper_proxy.conn_pool.replies import ReplyError

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.common.sockio import recv, send
    from hyper_proxy.conn_pool.flights import Flights
    from hyper_proxy.conn_pool.flusher import Flushed
    from hyper_proxy.conn_pool.hold import Hold
    from hyper_proxy.conn_pool.patience import Patience
    from hyper_proxy.conn_pool.room import Room

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.node import Node

CLOSED = 0
CONNECTING = 1
READY = 2
ENDING = 3  # what was sent is waited for, nothing more is sent
TIMER_SLACK_S = 0.0005  # a timer may be so early
COMPACT_AT = 4096  # answered entries kept at the front of `waiting` before they are cut off


@cython.cclass
class Traffic(Flushed):
    """Base of a lane, which opens and closes the connection. private: it is one client's alone."""

    def __init__(self, node: Node, private: bool) -> None:
        self.node = node
        self.private = private
        self.scheduled = False
        self.fresh = False  # connected, and nothing answered yet
        self.state = CLOSED
        self.max_pending_bytes = node.max_pending_bytes
        self.patience = Patience(node.read_s)
        self.pending: list = []
        self.queue: list = []  # gather, position, gather, position ... of `pending`
        self.waiting: list = []  # the same of what was sent, from `head` on
        self.pending_bytes = self.head = self.unsent_from = 0
        self.flights = Flights(node.latency)
        self.sent = self.answered = self.bytes_in = self.bytes_out = 0
        self.unsent: bytes | None = None
        self.queued_at = 0.0  # when the first of `pending` came
        self.room = Room()
        self.loop = get_hub().loop
        self.flusher = flusher()
        self.hold = Hold(self._release)
        self.fd = -1
        self.sock: Any = None
        self.reader: Any = None
        self.writer: Any = None
        self.timer: Any = None
        self.parser = node.parser()

    def _open(self) -> BackendError | None:
        """Begin to connect; None, or the BackendError that says why it is not tried now."""
        raise NotImplementedError

    def _lost(self, kind: str, detail: str, blame: bool) -> None:
        """The connection can't be used any more; with `blame` that is the server's fault."""
        raise NotImplementedError

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        """Send a whole request of this class soon; its reply goes to gather.deliver(position, reply).

        gather None: the reply is read and dropped. A lane that can't connect fails the gather at once.
        """
        self.flights.by_class[klass] += 1
        if self.state != READY and self.state == CLOSED:
            error = self._open()
            if error is not None:
                if gather is not None:
                    gather.fail(position, error)
                return
        if not self.pending:
            self.queued_at = now()
        self.pending.append(raw)
        self.pending_bytes += len(raw)
        self.queue.append(gather)
        self.queue.append(position)
        if not self.scheduled:
            self.scheduled = True
            self.flusher.add(self)

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Has the server too much to take already? Where there are several: that of this class."""
        return self.pending_bytes > self.max_pending_bytes

    def wait_for_room(self, klass: int) -> BackendError | None:
        """Wait until it has taken what is pending, at most the queue deadline; None, or the BackendError."""
        return None if self.room.wait(self.node.queue_s) else self.node.busy()

    @property
    def in_flight(self) -> int:
        """Requests sent and not answered."""
        return self.sent - self.answered

    @property
    def is_open(self) -> bool:
        """Connected and greeted."""
        return self.state == READY

    @property
    def queued(self) -> int:
        """Requests accepted and not sent."""
        return len(self.pending)

    # --- sending

    @cython.cfunc
    def flush(self) -> None:
        self.scheduled = False
        if self.state != READY or self.unsent is not None or not self.pending:
            return
        if self.fresh:
            if self.sent == self.answered:
                self._send_first()
            return
        at: cython.double = now()
        if self.sent != self.answered and not self.private and self.hold.begin(self.pending_bytes, at):
            self.scheduled = True  # by the answer, or by the end of the hold
            return
        self._flush_all(at)

    def _release(self) -> None:
        """The hold is over, and the answers are not there."""
        self.scheduled = False
        if self.state == READY and self.unsent is None and self.pending:
            self._flush_all(now())

    @cython.cfunc
    def _flush_all(self, at: cython.double) -> None:
        pending: list = self.pending
        count: cython.Py_ssize_t = len(pending)
        data: bytes = b"".join(pending)
        pending.clear()
        if not self.waiting:
            self.waiting, self.queue = self.queue, self.waiting
        else:
            self.waiting.extend(self.queue)
            self.queue = []
        self._depart(data, count, at)

    def _send_first(self) -> None:
        self.waiting.extend(self.queue[:2])
        del self.queue[:2]
        self._depart(bytes(self.pending.pop(0)), 1, now())

    @cython.cfunc
    def _depart(self, data: bytes, count: cython.Py_ssize_t, at: cython.double) -> None:
        self.sent += count
        self.flights.depart(self.sent, at)
        if self.timer is None and self.patience.read_s:
            self._start_timer(self.patience.read_s)
        self._send(data, 0)

    @cython.cfunc
    def _send(self, data: bytes, start: cython.Py_ssize_t) -> None:
        try:
            count: cython.Py_ssize_t = send(self.fd, data, start)
        except OSError as error:
            self._lost("reset", f"connection lost while sending: {error.strerror}", True)
            return
        self.bytes_out += count
        self.pending_bytes -= count
        start += count
        self.patience.say(count, self.bytes_out, self.fd)
        if start < len(data):
            if self.unsent is None:
                self.writer.start(self._on_writable)
            self.unsent = data
            self.unsent_from = start
            return
        if self.unsent is not None:
            self.unsent = None
            self.writer.stop()
            self.flush()
        if self.room.waiting and self.pending_bytes <= self.max_pending_bytes:
            self.room.open()

    def _on_writable(self) -> None:
        if self.unsent is not None:
            self._send(self.unsent, self.unsent_from)

    # --- receiving

    def _on_readable(self) -> None:
        try:
            data: bytes | None = recv(self.fd)
        except OSError as error:
            self._lost("reset", f"connection lost: {error.strerror}", True)
            return
        if data is None:
            return
        if not data:
            self._lost("reset", "it closed the connection", True)
            return
        at: cython.double = now()
        self.patience.hear(len(data), at)
        self.bytes_in += len(data)
        try:
            replies: list = self.parser.feed(data)
        except ReplyError as error:
            self._lost("protocol", f"its answer can't be understood: {error}", True)
            return
        count: cython.Py_ssize_t = len(replies)
        if count == 0:
            self.parser.drop_if_short()
            return
        if count > self.sent - self.answered:
            # One answer too many: nobody can say which belongs to which question, so none is passed on.
            self._lost("protocol", "it sent more answers than it was asked for", True)
            return
        if self.fresh:
            self.node.proved()
        answered: cython.Py_ssize_t = self.answered
        self.patience.advance(at)
        self.deliver(replies, at)
        self.flights.arrive(answered, count, at)
        if self.fresh:
            self.fresh = False
            self.flush()
        elif self.sent == self.answered and self.hold.end():
            # Not at once: clients that have their answers now may ask again before this turn of the loop ends.
            self.flusher.add(self)

    @cython.cfunc
    def deliver(self, replies: list, at: cython.double) -> None:
        gather: Gather | None
        waiting: list = self.waiting
        failed: cython.bint = True
        self.answered += len(replies)
        self.flights.answering_at = at
        try:
            for reply in replies:
                gather = waiting[self.head]
                position: cython.Py_ssize_t = waiting[self.head + 1]
                self.head += 2
                if gather is not None:
                    gather.deliver(position, reply)
            failed = False
        finally:
            self.flights.answering_at = 0.0
            if failed:  # the replies that are left would go to the wrong questions
                self.loop.run_callback(self._lost, "internal", "its replies could not be delivered", False)
        if self.head == len(waiting):
            waiting.clear()
            self.head = 0
            self.patience.large = False
        elif self.head > COMPACT_AT:
            del waiting[: self.head]
            self.head = 0

    # --- the deadline

    def _start_timer(self, seconds: float) -> None:
        self.timer = self.loop.timer(seconds)
        self.timer.start(self._on_timer)

    def _on_timer(self) -> None:
        """The bound was reached when the timer was set; is it still?"""
        self.timer.close()
        self.timer = None
        if not self.flights.any():
            return
        if self._time_left() <= TIMER_SLACK_S:
            # Was it the worker itself that had no time? Then the answer is there by now.
            sock = self.sock
            self._on_readable()
            if self.sock is not sock or self.timer is not None or not self.flights.any():
                return
            self.patience.look(self.bytes_out, self.fd, now())
        left: cython.double = self._time_left()
        if left <= TIMER_SLACK_S:
            self._lost("timeout", self.patience.fault(now()), True)
            return
        if self.unsent is not None and self.pending:
            left = min(left, self._expire())
        self._start_timer(left)

    def _time_left(self) -> float:
        return self.patience.left(self.flights.oldest(), now())

    def _expire(self) -> float:
        """The server is slow to read: what has waited for it too long is not sent. Seconds until the next look."""
        queue_s = self.node.queue_s
        left = self.queued_at + queue_s - now()
        if left > TIMER_SLACK_S:
            return left
        self.pending_bytes -= sum(map(len, self.pending))
        queue, self.queue, self.pending = self.queue, [], []
        detail = f"not sent within {round(queue_s * 1000)} ms, for it reads too slowly"
        self.flights.fail(queue, 0, self.node.error("queue", detail), False)
        return queue_s
