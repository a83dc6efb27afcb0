# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A client's session: walk over its requests, wait once for all their answers, write them in order.

What every protocol's session shares. The requests of one read are one batch: each opens slots of the gather, in order; a
request whose answer is made of several slots, or must be changed, also leaves a Reducer in `plan`.
"""

from __future__ import annotations

import cython

from hyper_proxy.common.errors import BackendError

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.stats.instance import InstanceStats

FIRST_DEPTH = 256  # requests of one batch, to begin with; limits.max_pipeline is the most
BATCH_BYTES = 1 << 22  # replies of a batch above this make the next batches smaller: bounds the memory of one client


@cython.cclass
class Reducer:
    """Makes one reply of `count` consecutive slots."""

    @cython.ccall
    def reduce(self, replies: list, session: Session) -> bytes:
        """replies: bytes or BackendError each. Returns the reply, b"" for none."""
        raise NotImplementedError


@cython.cclass
class Session:
    """Base of all sessions: serve() is the body of the connection's greenlet.

    front: the instance's hyper_proxy.front.Front; client: its hyper_proxy.entry.client.Client.
    """

    def __init__(self, front: object, client: object) -> None:
        self.front = front
        self.client = client
        self.write = client.write
        self.stats = front.stats
        self.gather = Gather()
        self.plan: list = []
        self.closing = False
        self.depth = FIRST_DEPTH
        self.need = 0
        self.rest = None
        self.began = 0.0
        self.reads = self.idempotents = self.writes = self.admins = 0
        self.take_snapshot()

    def serve(self) -> None:
        """Read, answer, until the client or the session ends."""
        read = self.client.read
        try:
            while not self.closing:
                data = read()
                if not data:
                    return
                self.feed(data)
        finally:
            self.end()

    @cython.ccall
    def feed(self, data: bytes):
        """Answer every whole request of these bytes; keep what is not whole."""
        if self.rest is not None:
            self.rest += data
            if len(self.rest) < self.need or not self.is_whole(self.rest):
                return
            data = bytes(self.rest)
            self.rest = None
        if self.front.snapshot is not self.snapshot:
            self.take_snapshot()
        start: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = len(data)
        self.need = 0
        while start < n and not self.closing and not self.need:
            self.began = now()
            start = self.walk(data, start)
            self.finish()
        if start < n and not self.closing:
            self.rest = bytearray(data if start == 0 else data[start:])

    @cython.ccall
    def finish(self):
        """Wait for the batch, write its answers."""
        gather: Gather = self.gather
        gather.wait()
        slots: list = gather.slots
        if not slots:
            return
        out: bytes
        if self.plan or gather.failed:
            out = self.encode()
        elif len(slots) == 1:
            out = slots[0]
        else:
            out = b"".join(slots)
        gather.reset()
        self.measure()
        size: cython.Py_ssize_t = len(out)
        if size > BATCH_BYTES:
            self.depth = max(1, self.depth // 2)
        elif self.depth < self.max_depth:
            self.depth += 1
        if size:
            self.write(out)

    def take_snapshot(self) -> None:
        """From now on the front's present configuration holds for this client."""
        self.snapshot = self.front.snapshot
        self.max_depth = self.snapshot.instance.limits.max_pipeline
        self.depth = min(self.depth, self.max_depth)
        self.adopt()

    # --- what a protocol must say

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def walk(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Submit whole requests of buf[start:], at most `depth`; the index after the last one taken.

        Sets `need` when the rest is not a whole request: how many bytes from that index must be there before another walk.
        """
        raise NotImplementedError

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, rest: bytearray) -> cython.bint:
        """Is it worth while to walk over these bytes? If not, sets `need`. Looks only at what has come since the last look."""
        return True

    def adopt(self) -> None:
        """Take what is used from a new `snapshot`."""
        raise NotImplementedError

    def end(self) -> None:
        """The client is gone: release what was its own."""

    def error_reply(self, error: object) -> bytes:
        """An error of the proxy, in the words of the protocol."""
        raise NotImplementedError

    # --- for the protocols

    @cython.ccall
    def send(self, lane: Lane, raw: object):
        """Send a whole request; its reply fills the slot that is opened here. Waits while the server has too much to take."""
        gather: Gather = self.gather
        if lane.pending_bytes > lane.max_pending_bytes:
            error = lane.wait_for_room()
            if error is not None:
                gather.fail(gather.expect(), error)
                return
        lane.submit(raw, gather, gather.expect())

    @cython.ccall
    def ask(self, lane: Lane, raw: object):
        """Send one request and wait for its reply; only with no slot open. Raises BackendError."""
        self.send(lane, raw)
        self.gather.wait()
        reply = self.gather.slots[0]
        self.gather.reset()
        if isinstance(reply, BackendError):
            raise reply
        return reply

    @cython.ccall
    def drop(self):
        """Wait for the batch and forget its answers."""
        self.gather.wait()
        self.gather.reset()
        self.plan = []

    @cython.ccall
    def reduce_later(self, reducer: Reducer):
        """The slots opened next (reducer.count of them) are one reply, which `reducer` makes."""
        self.plan.append((len(self.gather.slots), reducer))

    @cython.ccall
    def tally(self, klass: cython.int):
        """Count one request of this batch (0 read, 1 idempotent write, 2 other write, 3 admin)."""
        if klass == 0:
            self.reads += 1
        elif klass == 1:
            self.idempotents += 1
        elif klass == 2:
            self.writes += 1
        else:
            self.admins += 1

    @cython.cfunc
    def encode(self) -> bytes:
        slots: list = self.gather.slots
        out: list = []
        index: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        reducer: Reducer
        plan, self.plan = self.plan, []
        for at, reducer in plan:
            if index < at:
                self.copy(slots, index, at, out)
            index = at + reducer.count
            out.append(reducer.reduce(slots[at:index], self))
        if index < len(slots):
            self.copy(slots, index, len(slots), out)
        return out[0] if len(out) == 1 else b"".join(out)

    def copy(self, slots: list, start: int, end: int, out: list) -> None:
        """Slots whose reply needs no reducer; errors become replies and are counted."""
        for index in range(start, end):
            reply = slots[index]
            out.append(reply if isinstance(reply, (bytes, bytearray)) else self.error_reply(reply))

    @cython.cfunc
    def measure(self):
        stats: InstanceStats = self.stats
        us: cython.Py_ssize_t = int((now() - self.began) * 1e6)
        if self.reads:
            stats.note(0, self.reads, us)
        if self.idempotents:
            stats.note(1, self.idempotents, us)
        if self.writes:
            stats.note(2, self.writes, us)
        if self.admins:
            stats.note(3, self.admins, us)
        self.reads = self.idempotents = self.writes = self.admins = 0
