# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One client's requests under way: split by whoever knows the protocol, mapped here, reduced here.

    send, send, reduce_later + send ...     every request opens slots, in the client's order
    wait                                    once, for all of them
    collect                                 the replies in order; where several slots make one reply, by its Reducer

A batch in express mode is sent and collected in the event loop itself, while the client's greenlet sleeps on: nothing
in it has to wait but for replies, and then switching greenlets would be a third of the proxy's own work.
"""

from __future__ import annotations

from typing import Any, Protocol

import cython

from hyper_proxy.common.errors import BackendError

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.express import Taker
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane


class Wording(Protocol):
    """What a batch asks of the session whose requests it carries."""

    def error_reply(self, error: BackendError) -> bytes:
        """The error in the words of the protocol."""


@cython.cclass
class Reducer:
    """Makes one reply of `count` consecutive slots, the first of which is `at`."""

    count: cython.Py_ssize_t
    at: cython.Py_ssize_t

    @cython.ccall
    def reduce(self, replies: list, session: Any) -> bytes:
        """replies: bytes or BackendError each. session: the protocol's own. Returns the reply, b"" for none."""
        raise NotImplementedError


@cython.cclass
class Batch(Gather):
    """Used again and again by one session."""

    plan: list  # of Reducer
    express: cython.bint
    crowded: cython.bint  # a lane was full in express mode: the next batch must wait for room
    taker: Taker | None  # of the express batch that is under way
    # Of what had to be waited for before all was sent: (node, seconds before it was sent, of connecting, of answering)
    waits: list | None

    def __init__(self) -> None:
        super().__init__()
        self.plan = []
        self.express = False
        self.crowded = False
        self.taker = None
        self.waits = None

    @cython.ccall
    def begin_express(self) -> None:
        """What is sent from here on must not wait for anything."""
        self.express = True

    @cython.ccall
    def end_express(self, taker: Taker) -> cython.bint:
        """All is sent. False: every reply is there already; else `taker` is told when it is."""
        self.express = False
        if self.left == 0:
            return False
        self.taker = taker
        return True

    @cython.cfunc
    def complete(self) -> None:
        taker: Taker | None = self.taker  # held: the session may end, and this batch with it
        if taker is not None:
            self.taker = None
            taker.answer_express()
        else:
            self.wake()

    @cython.ccall
    def send(self, lane: Lane, raw: bytes | bytearray, klass: cython.Py_ssize_t) -> None:
        """Send a whole request of this class; its reply fills the slot that is opened here.

        Waits while the server has too much to take.
        """
        error = self.room(lane, klass)
        if error is None:
            lane.submit(raw, klass, self, self.expect())
        else:
            self.fail(self.expect(), error)

    @cython.ccall
    def room(self, lane: Lane, klass: cython.Py_ssize_t) -> BackendError | None:
        """Wait until the lane can take more of this class; None, or the BackendError that says it can't."""
        while lane.is_full(klass):
            if self.express:
                self.crowded = True
                return None
            since: cython.double = now()
            error = lane.wait_for_room(klass)  # all that wait are woken: the first ones may fill it again
            self.note_wait(lane.node.label, now() - since, 0.0, 0.0)
            if error is not None:
                return error
        if not self.express:
            self.crowded = False
        return None

    @cython.ccall
    def ask(self, lane: Lane, raw: bytes | bytearray, klass: cython.Py_ssize_t) -> bytes:
        """Send one request and wait for its reply; only with no slot open. Raises BackendError."""
        self.send(lane, raw, klass)
        since: cython.double = now()
        if self.left:
            self.wait()
            self.note_wait(lane.node.label, *lane.flights.journey(since))
        reply = self.slots[0]
        self.reset()
        if isinstance(reply, BackendError):
            raise reply
        return reply

    def note_wait(self, node: str, queue_s: float, connect_s: float, storage_s: float) -> None:
        """The requests behind it had to wait until this was over. Without times: what was answered from below the first
        level, when all had been sent, came from this server at last."""
        if self.waits is None:
            self.waits = []
        self.waits.append((node, queue_s, connect_s, storage_s))

    @cython.ccall
    def reduce_later(self, reducer: Reducer) -> None:
        """The slots opened next (reducer.count of them) are one reply, which `reducer` makes."""
        reducer.at = len(self.slots)
        self.plan.append(reducer)

    @cython.ccall
    def collect(self, session: Wording) -> bytes:
        """All replies in order, when no slot is open; the session says how it words errors."""
        slots: list = self.slots
        out: bytes
        if self.plan or self.failed:
            out = self._reduce(session)
        elif len(slots) == 1:
            out = slots[0]
        else:
            out = b"".join(slots)
        self.reset()
        return out

    @cython.cfunc
    def _reduce(self, session: Wording) -> bytes:
        slots: list = self.slots
        out: list
        index: cython.Py_ssize_t = 0
        reducer: Reducer
        if len(self.plan) == 1:
            reducer = self.plan[0]
            if reducer.count == len(slots):  # one request alone
                self.plan.clear()
                return reducer.reduce(slots, session)
        out = []
        plan, self.plan = self.plan, []
        for reducer in plan:
            if index < reducer.at:
                _copy(slots, index, reducer.at, out, session)
            index = reducer.at + reducer.count
            out.append(reducer.reduce(slots[reducer.at : index], session))
        if index < len(slots):
            _copy(slots, index, len(slots), out, session)
        return out[0] if len(out) == 1 else b"".join(out)


def _copy(slots: list, start: int, end: int, out: list, session: Wording) -> None:
    """Slots that need no reducer: replies as they are, errors in the session's words."""
    for index in range(start, end):
        reply = slots[index]
        out.append(session.error_reply(reply) if isinstance(reply, BackendError) else reply)
