# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One memcache client: the walk over its requests.

Here is the way of what a memcached is asked for: a request goes to the shard of its key as it came, a retrieval of many
keys is split. What the proxy answers itself is in local.py, Lushan's way in lushan.py, that of a key-value storage in
embedded.py. Every answer is held against its question before it is passed on (questions.py).
"""

from typing import Any

import cython

from hyper_proxy.common.errors import ClientError
from hyper_proxy.common.plugin_error import PluginError
from hyper_proxy.protocol.memcache import asked, echo, embedded, local, lushan, meta, wording
from hyper_proxy.protocol.memcache.commands import UNKNOWN
from hyper_proxy.protocol.memcache.dropped import Dropped
from hyper_proxy.protocol.memcache.fanout import MultiGet
from hyper_proxy.protocol.memcache.framing import Framer, split_words
from hyper_proxy.stats.plugin_faults import report
from hyper_proxy.storage.keyvalue import KeyValue

if not cython.compiled:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.protocol.memcache.command import Command
    from hyper_proxy.protocol.memcache.fanout import Part
    from hyper_proxy.protocol.memcache.questions import Questions
    from hyper_proxy.protocol.observed import ODD, PLAIN, READ
    from hyper_proxy.protocol.session import Session
    from hyper_proxy.stats.access import Sight

RETRIEVE_TOUCHING = 1  # hyper_proxy.protocol.memcache.command has all forms; up to this one they are retrievals
LOCAL = 10

OF_HTTP = frozenset({b"POST ", b"GET /", b"PUT /", b"HEAD ", b"OPTIO", b"Host:"})


@cython.cclass
class MemcacheSession(Session):
    """A memcache client has no state but its place in the stream.

    buf        the bytes with the requests of the batch
    questions  of those that are forwarded
    swallow    bytes of a refused value that are still to come
    treat      None when requests are forwarded, else the function that answers them: (session, buf, end) -> bool
    """

    def __init__(self, front: Any, client: Any) -> None:
        self.sequence = next(front.sequence)
        self.questions = Questions()
        self.buf = b""
        self.swallow = 0
        self.dropped: Dropped | None = None
        super().__init__(front, client)

    def adopt(self) -> None:
        snapshot = self.snapshot
        limits = snapshot.instance.limits
        self.max_keys = limits.max_arguments
        self.max_line = limits.max_line_bytes
        self.framer = Framer(limits.max_key_bytes, limits.max_value_bytes, limits.max_line_bytes)
        self.max_key = self.framer.max_key
        self.placement = snapshot.placement
        storage = snapshot.storage
        if isinstance(storage, KeyValue):
            self.lanes = []
            self.treat: Any = embedded.treat
        else:
            self.lanes = storage.lanes(self.sequence)
            self.treat = None if storage.forwards else lushan.treat

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, rest: bytearray) -> cython.bint:
        """A line without an end is only searched for it, not taken up again at every packet."""
        framer: Framer = self.framer
        size: cython.Py_ssize_t = len(rest)
        if not framer.position or size > self.max_line or rest.find(b"\n", framer.position) >= 0:
            return True
        framer.position = size
        self.need = size + 1
        return False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def walk(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        framer: Framer = self.framer
        n: cython.Py_ssize_t = len(buf)
        depth: cython.Py_ssize_t = self.depth
        end: cython.Py_ssize_t
        size: cython.Py_ssize_t
        taken: cython.bint
        self.buf = buf
        if self.swallow and self.batch.express:
            return start
        while start < n and depth > 0 and not self.closing:
            if self.swallow:
                size = min(self.swallow, n - start)
                self.swallow -= size
                start += size
                if depth == self.depth:
                    self.seen_from = start  # that was no request of this batch
                continue
            try:
                end = framer.scan(buf, start)
            except ClientError as fault:
                self.answer(wording.client_error(fault))
                self.front.stats.error(fault.kind)
                self.tally(UNKNOWN.klass)
                self.closing = True
                framer.key_start = 0  # that of a request before it
                return n
            if end < 0:
                self.need = framer.need
                break
            depth -= 1
            try:
                taken = self.take(buf, start, end)
            except PluginError as fault:
                taken = self.misplaced(fault)
            if not taken:
                break
            start = end
        return start

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """One request. False: it must wait until the batch before it is answered."""
        framer: Framer = self.framer
        command: Command = framer.command
        if self.batch.express and (
            framer.error is not None or framer.noreply or command.form >= LOCAL or self.treat is not None
        ):
            return False  # what may leave no answer, or waits for more than a reply
        if framer.error is not None:
            if buf[start : start + 5] in OF_HTTP:
                # A web page can make a browser send a request here, and put commands into its body: hang up.
                self.closing = True
            return self.refuse()
        taken: cython.bint = True
        if command.form >= LOCAL:
            taken = local.treat(self, split_words(buf, framer.args, framer.text_end))
        elif self.treat is not None:
            taken = self.treat(self, buf, end)
        elif framer.several:
            self.split(buf, start, end)
        elif framer.quiet > 1:
            self.answer(meta.flag_error(command.name, split_words(buf, framer.key_end, framer.cut)))
        else:
            self.forward(buf, start, end)
        if taken:
            self.tally(command.klass)
        return taken

    @cython.cfunc
    def forward(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        """One key: the request goes to its shard."""
        framer: Framer = self.framer
        command: Command = framer.command
        shard: cython.Py_ssize_t = self.shard()
        lane: Lane = self.lanes[shard]
        raw: bytes = framer.request(buf, start, end)
        if framer.encoded:
            raw = echo.passable(self, buf, raw)
            if not raw:
                return
        if framer.noreply:
            self.send_unheard(lane, raw)
            return
        row: Command = cython.cast(Command, command.quiet) if framer.quiet else command
        self.questions.note(len(self.batch.slots), row, framer.key_start, framer.key_end - framer.key_start, shard)
        self.batch.send(lane, raw, command.klass)

    @cython.cfunc
    def split(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        """Several keys: one request for each shard that holds some of them."""
        framer: Framer = self.framer
        reducer: MultiGet = MultiGet()
        part: Part
        touching: cython.bint = framer.command.form == RETRIEVE_TOUCHING
        name: bytes = framer.command.name
        # bget is an old name of get, for which memcached reads no long lines.
        head: cython.Py_ssize_t = framer.args - (3 if name == b"bget" else len(name))
        error: bytes = reducer.cut(
            buf, head, framer.key_start, framer.text_end, self.placement, self.max_key, self.max_keys, touching,
            framer.long,
        )  # fmt: skip
        if error:
            self.answer(error)
            self.front.stats.error("client")
            return
        self.batch.reduce_later(reducer)
        for part in reducer.parts:
            raw: object = framer.request(buf, start, end) if part.request is None else part.request
            self.batch.send(self.lanes[part.shard], raw, framer.command.klass)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def refuse(self) -> cython.bint:
        """The error that the framer has found."""
        framer: Framer = self.framer
        self.swallow = framer.swallow
        if framer.stale:
            local.forget(self)
        if not framer.noreply:
            self.answer(framer.error)
        if framer.error != wording.END:
            self.front.stats.error("client")
        self.tally(framer.command.klass)
        return True

    def misplaced(self, fault: PluginError) -> bool:
        """Nobody knows where a key of the request at hand lives."""
        reply = self.error_reply(fault)
        if not self.framer.noreply:
            self.answer(reply)
        self.tally(self.framer.command.klass)
        return True

    # --- answers

    @cython.cfunc
    def check_answers(self) -> None:
        self.questions.check(self.batch.slots, self.buf, self)
        self.buf = b""

    def error_reply(self, fault: Any) -> bytes:
        self.front.stats.error(fault.kind)
        report(fault, self.snapshot.instance.name)
        return wording.client_error(fault) if isinstance(fault, ClientError) else wording.server_error(fault)

    @cython.ccall
    def misfit(self, shard: cython.Py_ssize_t) -> bytes:
        """The error for a node whose answer does not fit its question; nothing else that it says can be trusted."""
        return self.misfit_of(self.lanes[shard])

    def misfit_of(self, lane: Lane) -> bytes:
        """The same for the node of a lane."""
        return self.error_reply(lane.distrust("its answer does not fit the request"))

    def lanes_of(self, targets: Any) -> list[Lane]:
        """The lanes of some of the storage's nodes, for this client."""
        found: list[Lane] = self.snapshot.storage.lanes_of(targets, self.sequence)
        return found

    # --- for the ways of treatment

    @cython.ccall
    def answer(self, reply: bytes) -> None:
        """The reply to the request at hand, known without asking anybody."""
        self.batch.add(reply)

    @cython.ccall
    def send_unheard(self, lane: Lane, raw: object) -> None:
        """Send a request whose answer nobody wants."""
        if self.dropped is None:
            self.dropped = Dropped(self.front.stats)
        klass: cython.Py_ssize_t = self.framer.command.klass
        error = self.batch.room(lane, klass)
        if error is not None:
            self.dropped.fail(-1, error)
            return
        lane.submit(raw, klass, self.dropped, -1)

    @cython.ccall
    def key(self) -> bytes:
        """The key of the request at hand, as the server will know it."""
        key: bytes = self.buf[self.framer.key_start : self.framer.key_end]
        return meta.decode_key(key) if self.framer.encoded else key

    @cython.ccall
    def shard(self) -> cython.Py_ssize_t:
        """The shard of the (first) key of the request at hand."""
        if self.framer.encoded:
            key: bytes = self.key()
            return self.placement.locate(key, 0, len(key))
        return self.placement.locate(self.buf, self.framer.key_start, self.framer.key_end)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def spot(self, index: cython.Py_ssize_t, sight: Sight) -> cython.int:
        framer: Framer = self.framer
        start: cython.Py_ssize_t = self.seen_from
        if self.need or self.seen is None:
            return ODD  # the framer is in the middle of a request
        buf: bytes = self.seen
        try:
            while not (framer.key_start and self.is_single(framer.key_start)):
                if start >= self.seen_to:
                    return ODD
                start = framer.scan(buf, start)
                if index == 0:
                    break
                index -= 1
                start += framer.swallow
        except ClientError:
            return ODD
        if framer.error is not None or framer.encoded or framer.command.form >= LOCAL:
            return ODD
        sight.command = framer.command.name
        sight.key_start = framer.key_start
        sight.key_end = framer.key_end
        sight.keys = 1
        if framer.several:
            sight.keys = _words(buf, framer.key_start, framer.text_end)
            return PLAIN
        return PLAIN if framer.command.form else READ  # 0: RETRIEVE

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def size(self, reply: bytes) -> cython.Py_ssize_t:
        """The bytes of the value in the answer to a get; 0 when there is none."""
        p: cython.p_uchar = reply
        i: cython.Py_ssize_t = 0
        spaces: cython.int = 0
        size: cython.Py_ssize_t = 0
        if p[0] != 86:
            return 0
        while spaces < 3 and p[i] != 10:
            if p[i] == 32:
                spaces += 1
            i += 1
        while 48 <= p[i] <= 57:
            size = size * 10 + (p[i] - 48)
            i += 1
        return size

    def describe(self, buf: bytes, start: int, end: int, index: int) -> Any:
        return asked.describe(self.framer, buf, start, end, index)

    def sizes(self, request: Any, reply: bytes) -> Any:
        return asked.sizes(request, reply)

    @property
    def instance(self) -> Any:
        """The configuration of the instance that this client is connected to."""
        return self.snapshot.instance


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _words(buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many words are in buf[start:end], as framing.split_words finds them."""
    p: cython.p_uchar = buf
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for i in range(start, end):
        if p[i] != 32 and (i == start or p[i - 1] == 32):
            count += 1
    return count
