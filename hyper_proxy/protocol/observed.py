# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What of a session is looked at: batches that were slow or are sampled, and the keys of some requests.

The plainest batches are recorded here and in hyper_proxy/stats/access.py, without a Python object for what is said of
them; all others by look.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cython

from hyper_proxy.protocol import look

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.express import Taker
    from hyper_proxy.conn_pool.flights import Flights
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.stats.access import Scribe, Sight
    from hyper_proxy.stats.watch import Watch
    from hyper_proxy.tunnel.batch import Batch

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client
    from hyper_proxy.protocol.look import Asked, Draft

# What Observed.spot says of a request
ODD = 0
PLAIN = 1
READ = 2


@cython.cclass
class Observed(Taker):
    """Base of Session.

    The requests of the present batch are seen[seen_from:seen_to]. It was read at `began`, all of it was handed on at
    `walked`. draft: it is looked at more closely, and will be recorded when its answer is written; seeing: the same,
    but it is of the plainest kind, and all is in the sight of the watch's scribe.
    """

    client: Client
    batch: Batch
    lanes: list  # the client's lanes by shard; empty when the storage is no server
    need: cython.Py_ssize_t  # bytes of the unfinished request that must be there before another look
    watch: Watch
    began: cython.double
    walked: cython.double
    seen: bytes | None
    seen_from: cython.Py_ssize_t
    seen_to: cython.Py_ssize_t
    large: cython.bint  # is it much that was read?
    slots: list | None  # the replies of the batch, if it is to be looked at
    failed: cython.bint  # is a failure among the slots?
    draft: Draft | None
    seeing: cython.bint
    label: bytes  # the client's address as it stands in the log, as of label_epoch
    label_epoch: cython.longlong
    reads: cython.Py_ssize_t
    idempotents: cython.Py_ssize_t
    writes: cython.Py_ssize_t
    admins: cython.Py_ssize_t

    @cython.cfunc
    def observe(self, client: Client, watch: Watch) -> None:
        """Begin, with nothing seen so far."""
        self.client = client
        self.watch = watch
        self.lanes = []
        self.need = 0
        self.began = self.walked = 0.0
        self.seen = None
        self.seen_from = self.seen_to = 0
        self.large = False
        self.slots = None
        self.draft = None
        self.seeing = self.failed = False
        self.label = b""
        self.label_epoch = -1
        self.reads = self.idempotents = self.writes = self.admins = 0

    @cython.cfunc
    def look(self, us: cython.Py_ssize_t, count: cython.Py_ssize_t, out: bytes) -> None:
        """The batch has taken `us` microseconds: that is slow, or a request of it is sampled."""
        watch: Watch = self.watch
        logged: cython.bint = False
        if watch.countdown <= 0:
            logged = watch.advance()
            index: cython.Py_ssize_t = watch.pick(count)
            while index >= 0:
                reply: object = None  # it is not known which one
                if count == 1:
                    reply = out
                elif self.slots is not None and len(self.slots) == count:
                    reply = self.slots[index]
                if not self.sample(index, reply):
                    look.count_keys(self, index, reply)
                index = watch.pick(count)
            watch.restart()
        if us >= watch.slow_us or (logged and not self.see(us, count, out)):
            self.draft = look.look(self, us, count, self.slots, out)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def sample(self, index: cython.Py_ssize_t, reply: object) -> cython.bint:
        """Count the key of the request number `index` of the batch; False when it is not of the simplest kind."""
        sight: Sight = self.watch.scribe.sight
        kind: cython.int = self.spot(index, sight)
        size: cython.Py_ssize_t = -1
        if kind == ODD or sight.keys != 1:
            return False
        buf: bytes = cython.cast(bytes, self.seen)
        if kind == PLAIN:
            size = self.given(buf)
            if size < 0:
                return False
        elif isinstance(reply, bytes):
            size = self.size(reply)
        key: bytes = buf[sight.key_start : sight.key_end]
        self.watch.count_key(key)
        if size >= 0:
            self.watch.big.add(key, size)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def see(self, us: cython.Py_ssize_t, count: cython.Py_ssize_t, out: bytes) -> cython.bint:
        """Take what the record of a sampled batch needs into sight; False when that is not enough for it."""
        scribe: Scribe = self.watch.scribe
        sight: Sight = scribe.sight
        batch: Batch = self.batch
        first: cython.p_uchar = out
        lane: Lane
        flights: Flights
        if not scribe.ready():
            return scribe.mute
        if self.failed or batch.waits is not None or self.client.turn is not None or self.spot(0, sight) == ODD:
            return False
        if self.label_epoch != scribe.epoch:
            self.label = scribe.client(self.client.address)
            self.label_epoch = scribe.epoch
        sight.requests = count
        sight.bytes_in = self.seen_to - self.seen_from
        sight.bytes_out = len(out)
        sight.failed = len(out) > 0 and first[0] in (45, 67, 69, 83) and out.startswith(look.FAILED)
        sight.began = self.began
        sight.walked = self.walked
        sight.queue_s = sight.connect_s = sight.storage_s = 0.0
        sight.ended = self.began + us * 1e-6
        if not self.lanes:
            sight.node = scribe.nobody
            self.seeing = True
            return True
        for lane in self.lanes:
            flights = lane.flights
            if flights.answering_at >= self.walked:
                if flights.written_epoch != scribe.epoch:
                    flights.written = scribe.node(lane.node.label)
                    flights.written_epoch = scribe.epoch
                sight.node = flights.written
                if flights.refusing or flights.ready_at > self.walked:
                    sight.connect_s = flights.connecting(self.walked)
                sight.queue_s = flights.departed(self.walked)
                sight.storage_s = flights.answering_at - sight.queue_s
                sight.queue_s -= self.walked + sight.connect_s
                self.seeing = True
                return True
        return False  # a child of a route has answered, or the proxy itself

    # --- when the answer is written

    def note_stall(self, size: int) -> None:
        """The client does not take the whole answer, of `size` bytes, at once; 0: now it has it, or is lost."""
        if self.client.shared:
            return  # what it is slow to take may be no answer
        if size and self.seeing:
            self.draft = look.look_again(self, self.watch.scribe.sight)
            self.forget()
        elif size and self.draft is None:
            self.draft = look.look_at_stall(self, size)
        elif not size and (self.seeing or self.draft is not None):
            self.record()

    @cython.ccall
    def record(self) -> None:
        """The answer is written."""
        if self.seeing:
            self.tell()
        if self.draft is not None:
            draft, self.draft = self.draft, None
            look.finish(self, draft)

    @cython.cfunc
    def tell(self) -> None:
        """Write the record of what is in sight; if its end has made it slow, it is one for look.py."""
        watch: Watch = self.watch
        written: cython.double = now()
        if (written - self.began) * 1e6 >= watch.slow_us:
            self.draft = look.look_again(self, watch.scribe.sight)
        else:
            watch.scribe.write(self.label, self.seen, written)
        self.forget()

    @cython.cfunc
    def forget(self) -> None:
        """What was in sight is recorded."""
        self.seeing = False
        if self.large:
            self.large = False
            self.seen = None

    # --- what a protocol must say

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def spot(self, index: cython.Py_ssize_t, sight: Sight) -> cython.int:
        """Take command and keys of the request number `index` of the batch into sight.

        PLAIN: all that there is to say of it is in sight; READ: and it reads one key; ODD: it is of another kind.
        """
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def size(self, reply: bytes) -> cython.Py_ssize_t:
        """The bytes of the value in the reply to a READ; 0 when there is none."""
        return 0

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def given(self, buf: bytes) -> cython.Py_ssize_t:
        """The bytes that the PLAIN request in sight, of one key, brings for it; -1: `describe` must say."""
        return -1

    def describe(self, buf: bytes, start: int, end: int, index: int) -> Asked | None:
        """The request number `index` of those in buf[start:end], which were walked over; None when there is none.

        Of one that is not whole there, since it was refused before it was, what is known is its name.
        """
        return None

    def sizes(self, asked: Asked, reply: bytes) -> list[int] | None:
        """The bytes of each key's value in the reply to a request of reads; None when it does not tell."""
        return None

    def failures(self, slots: list | None) -> list:
        """Of the servers that the batch asked: BackendErrors, in order. slots: its replies if one has failed."""
        return look.failures(slots or ())

    def complaint(self, out: bytes) -> str:
        """The kind of the error that the answers `out` begin with, or what the protocol says of it; "" for none."""
        return look.complaint(out)

    # --- for the protocols

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def is_single(self, at: cython.Py_ssize_t) -> cython.bint:
        """Is the batch one request, and that the one which has something at this place?"""
        return self.seen_from <= at < self.seen_to and self.count() == 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def count(self) -> cython.Py_ssize_t:
        """Requests of the batch, as far as they are counted by class."""
        return self.reads + self.idempotents + self.writes + self.admins

    @property
    def counted(self) -> int:
        """The same."""
        return self.count()
