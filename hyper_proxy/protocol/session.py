# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A client's session: walk over its requests, wait once for all their answers, write them in order.

What every protocol's session shares. The requests of one read are one batch (hyper_proxy.tunnel.batch). A batch that
waits for nothing but replies takes the express way; everything else is done by the connection's greenlet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cython

from hyper_proxy.common import faults
from hyper_proxy.common.errors import HyperProxyError, LimitExceeded
from hyper_proxy.common.turn import let_others_run
from hyper_proxy.stats.classes import ADMIN

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.protocol.observed import Observed
    from hyper_proxy.stats.instance import InstanceStats
    from hyper_proxy.tunnel.batch import Batch

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client
    from hyper_proxy.front import Front, Snapshot

# Requests of one batch, to begin with; doubled with each batch up to limits.max_pipeline. Nobody knows beforehand how
# large the replies will be.
FIRST_DEPTH: cython.Py_ssize_t = 4
# Batches hold as many requests as would have made so many bytes, by the replies of the last one: bounds the memory of
# one client.
USUAL_BATCH_BYTES: cython.Py_ssize_t = 1 << 22
BATCH_BYTES: cython.Py_ssize_t = USUAL_BATCH_BYTES
LARGE_BYTES: cython.Py_ssize_t = 65536  # of an unfinished request: from here on the client is told of it
TURN_S: cython.double = 0.002  # a pipeline that waits for nobody lets the others have their turn after this
# Requests of a read above this are forgotten when they are answered, since the client may be idle then; and only those
# take time to be parsed.
SEEN_BYTES: cython.Py_ssize_t = 4096


def limit_batches(size: int) -> None:
    """From now on batches of all clients are for replies of so many bytes; 0: as many as usual."""
    global BATCH_BYTES
    BATCH_BYTES = size or USUAL_BATCH_BYTES


@cython.cclass
class Session(Observed):
    """Base of all sessions: serve() is the body of the connection's greenlet.

    front: the instance in this worker; snapshot: its configuration as this client sees it now.
    """

    front: Front
    snapshot: Snapshot
    later: bytes | None  # came behind an express batch, for the greenlet
    closing: cython.bint  # after what is answered now
    depth: cython.Py_ssize_t  # requests of a batch at most, now
    max_depth: cython.Py_ssize_t
    max_request: cython.Py_ssize_t  # bytes of one request at most
    rest: bytearray | None  # an unfinished request
    stats: InstanceStats
    turn: cython.double  # when the greenlet went on after others had run

    def __init__(self, front: Front, client: Client) -> None:
        self.front = front
        self.observe(client, front.watch)
        self.stats = front.stats
        self.batch = Batch()
        self.later = None
        self.closing = False
        self.depth = FIRST_DEPTH
        self.rest = None
        self.turn = 0.0
        self.snapshot = front.snapshot
        self.take_snapshot()
        client.express = self
        client.on_stall = self.note_stall

    def serve(self) -> None:
        """Read, answer, until the client or the session ends."""
        read = self.client.read
        try:
            while not self.closing:
                data = read()
                if not data:
                    return
                self.feed(data)
                data = b""  # or it would be kept until the client says something again
        finally:
            self.client.dismissed = self.closing
            self.end()
            self.rest = None

    @cython.ccall
    def feed(self, data: bytes) -> None:
        """Answer every whole request of these bytes; keep what is not whole."""
        if self.rest is not None:
            self.rest += data
            if len(self.rest) < self.need or not self.is_whole(self.rest):
                self.keep_rest()
                return
            data = bytes(self.rest)
            self.rest = None
            self.note_rest()
        start: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = len(data)
        self.need = 0
        self.turn = now()
        while start < n and not self.need:
            if self.front.snapshot is not self.snapshot:  # also while a client took its time to read what it has asked
                self.take_snapshot()
            if self.closing:
                return
            self.began = now()
            if self.began - self.turn > TURN_S:
                self.make_way()
            self.seen = data
            self.seen_from = start
            start = self.walk(data, start)
            self.seen_to = start
            self.large = n > SEEN_BYTES
            self.walked = now()
            self.finish()
        if start < n and not self.closing:
            self.rest = bytearray(data if start == 0 else data[start:])
            self.keep_rest()

    def keep_rest(self) -> None:
        """The rest is an unfinished request: it is kept, if it is not too long already."""
        self.note_rest()
        if self.rest is not None and len(self.rest) > self.max_request:
            self.refuse_request(self.rest)

    @cython.cfunc
    def note_rest(self) -> None:
        """Tell the client how much of an unfinished request is kept for it, if that is much."""
        size: cython.Py_ssize_t = 0 if self.rest is None else len(self.rest)
        if size >= LARGE_BYTES:
            self.client.kept = size
            self.client.lacking = max(0, self.need - size)
        elif self.client.kept:
            self.client.kept = 0

    @cython.ccall
    def finish(self) -> None:
        """Wait for the batch, write its answers."""
        if self.batch.left:
            self.batch.wait()
            self.turn = now()
        elif now() - self.began > TURN_S:
            self.depth = max(1, self.depth // 4)  # which is halved then: see answers()
        if self.batch.slots:
            self.client.write(self.answers())
        elif self.count():
            self.measure(self.count(), b"")  # requests that want no answer
        if self.seeing or self.draft is not None:
            self.record()

    def make_way(self) -> None:
        """Let the event loop turn: a pipeline whose answers need no server would hold it as long as it lasts."""
        self.stats.yields += 1
        let_others_run()
        self.began = self.turn = now()

    @cython.cfunc
    def answers(self) -> bytes:
        """What is to be written, now that every slot of the batch is filled."""
        self.check_answers()
        count: cython.Py_ssize_t = self.count()
        kept: cython.bint = self.batch.failed or self.watch.countdown <= count
        if kept:
            self.slots = self.batch.slots
            self.failed = self.batch.failed
        out: bytes = self.batch.collect(self)
        self.measure(count, out)
        if kept:
            self.slots = None
        fits: cython.Py_ssize_t = max(1, count) * BATCH_BYTES // (len(out) + 1)
        self.depth = max(1, min(2 * self.depth, fits, self.max_depth))
        if self.large and not self.seeing:
            self.large = False
            self.seen = None
        return out

    # --- the express way: in the event loop, while the greenlet sleeps in client.read()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take_express(self, data: bytes) -> cython.bint:
        """Bytes have come: send the requests that wait for nothing but their replies. False: `feed` must do it all.

        What is not taken here waits in `later` for the greenlet.
        """
        batch: Batch = self.batch
        if self.rest is not None or batch.crowded or self.front.snapshot is not self.snapshot:
            return False
        self.need = 0
        self.began = now()
        batch.begin_express()
        end: cython.Py_ssize_t = self.walk(data, 0)
        self.seen = data
        self.seen_from = 0
        self.seen_to = end
        self.walked = self.began
        if len(data) > SEEN_BYTES:
            self.large = True
            self.walked = now()
        if batch.end_express(self):
            self.later = data[end:] if end < len(data) else None
        elif end > 0 or batch.slots:  # slots alone: the first request was malformed
            self.later = data[end:] if end < len(data) else None
            self.answer_express()
        else:
            return False
        return True

    @cython.cfunc
    def answer_express(self) -> None:
        """The batch that take_express sent is answered."""
        later, self.later = self.later, None
        out: bytes = b""
        try:
            out = self.answers()
        except Exception:  # noqa: BLE001  it ends this client; the lane that delivers here delivers to others as well
            faults.show(self.client)
            self.stats.error("internal")
            self.closing = True
        self.client.answer_express(out, b"" if self.closing else later)
        if (self.seeing or self.draft is not None) and not self.client.stalled:
            self.record()

    def take_snapshot(self) -> None:
        """From now on the front's present configuration holds for this client, who is let go if it can't."""
        if not self.snapshot.is_like(self.front.snapshot):
            self.closing = True
            return
        self.snapshot = self.front.snapshot
        self.client.write_s = self.snapshot.instance.limits.write_timeout_ms / 1000
        self.max_request = self.snapshot.instance.limits.max_request_bytes
        self.max_depth = self.snapshot.instance.limits.max_pipeline
        self.depth = min(self.depth, self.max_depth)
        self.adopt()

    # --- what a protocol must say, beside what Observed asks

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def walk(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Submit whole requests of buf[start:], at most `depth`; the index after the last one taken.

        Sets `need` when the rest is not a whole request: how many bytes from that index must be there before another
        walk.
        """
        raise NotImplementedError

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, rest: bytearray) -> cython.bint:
        """Is it worth while to walk over these bytes? If not, sets `need`. Looks only at what is new since then."""
        return True

    @cython.cfunc
    def check_answers(self) -> None:
        """Look at the replies before they are passed on."""

    def adopt(self) -> None:
        """Take what is used from a new `snapshot`."""
        raise NotImplementedError

    def end(self) -> None:
        """The client is gone: release what was its own."""

    def refuse_request(self, begun: bytearray) -> None:
        """A request has grown beyond every limit: its rest can't be skipped, so the client is told and closed."""
        self.closing = True
        self.began = self.walked = now()
        self.seen = bytes(begun[:SEEN_BYTES])  # its name is there
        self.seen_from, self.seen_to = 0, len(begun)
        self.rest = None
        self.note_rest()
        self.batch.add(self.error_reply(self.beyond("max_request_bytes", "the request is longer than")))
        self.tally(ADMIN)
        self.finish()

    def beyond(self, limit: str, what: str) -> LimitExceeded:
        """The error of a client whose request, `what` says how, is beyond this limit of the instance."""
        return LimitExceeded(limit, f"{what} limits.{limit} ({getattr(self.snapshot.instance.limits, limit)})")

    def error_reply(self, error: HyperProxyError) -> bytes:
        """An error of the proxy, in the words of the protocol."""
        raise NotImplementedError

    # --- for the protocols

    @cython.ccall
    def tally(self, klass: cython.int) -> None:
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
    def measure(self, count: cython.Py_ssize_t, out: bytes) -> None:
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
        self.watch.countdown -= count
        if us >= self.watch.slow_us or self.watch.countdown <= 0:
            self.look(us, count, out)
        if self.batch.waits is not None:
            self.batch.waits = None
        self.reads = self.idempotents = self.writes = self.admins = 0
