# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Split a retrieval of many keys by shard, merge the items in the client's order: without an object per key.

Pass 1 locates every key and adds up what each shard's request will need; pass 2 copies the keys into one exactly sized
buffer per shard. The merge walks the client's keys once more: an item belongs to the next key of its shard that has the
item's name, the keys between were not found. An item that was not asked for, or not in this order, is a server's fault.
"""

from typing import Any

import cython

from hyper_proxy.protocol.memcache import wording
from hyper_proxy.storage.memcache_replies import ERRORS

if not cython.compiled:
    from hyper_proxy.common.buffers import chars, copy, finished, new_bytes
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.tunnel.batch import Reducer

END_BYTES = 5  # "END" CRLF
ITEM_HEAD = 6  # "VALUE "
# memcached may close a connection on which 2048 bytes came without the end of a line. A last key comes on top.
SHORT_LINE = 1600
MOST_PARTS = 65536


@cython.cclass
class Part:
    """What goes to one shard: `keys` of them in `request`; then the shard's reply, read up to `cursor`."""

    def __init__(self, shard: cython.Py_ssize_t, index: cython.Py_ssize_t) -> None:
        self.shard = shard
        self.index = index
        self.keys = 0
        self.request: Any = None  # see new_bytes; None when the client's request can travel as it came
        self.size = 0
        self.cursor = 0
        self.end = 0
        self.reply = b""


@cython.cclass
class MultiGet(Reducer):
    """A retrieval of several keys; `parts` are in the order in which their slots are opened."""

    def __init__(self) -> None:
        self.parts: list = []
        self.keys = 0
        self.count = 0
        self.lost = 0  # keys of the parts that failed
        self.failure = b""
        self.table: bytearray = bytearray()  # three bytes a key: the index of its part, and its length
        self.buf = b""
        self.first = 0
        self.text_end = 0

    @cython.ccall
    def cut(self, buf: bytes, head: cython.Py_ssize_t, first: cython.Py_ssize_t, text_end: cython.Py_ssize_t,
            placement: Placement, max_key: cython.Py_ssize_t, max_keys: cython.Py_ssize_t,
            short_lines: cython.bint, rewrite: cython.bint) -> bytes:
        """Fill `parts` with the keys of buf[first:text_end]; each request begins with buf[head:first].

        short_lines: memcached takes a line of any length for get and gets only, others are cut at SHORT_LINE.
        rewrite: write the request anew even if there is a single part, which else has none: the client's can travel as
        it came. Returns the error for the client, b"" when there is none.
        """
        p: cython.p_uchar = buf
        keys: cython.Py_ssize_t = 0
        index: cython.Py_ssize_t
        i: cython.Py_ssize_t = first
        start: cython.Py_ssize_t
        shard: cython.Py_ssize_t
        room: cython.Py_ssize_t = SHORT_LINE - (first - head) if short_lines else text_end
        part: Part
        by_shard: list = [None] * placement.shards
        table: bytearray = bytearray(3 * buf.count(b" ", first, text_end) + 3)
        t: cython.p_uchar = table
        while True:
            while i < text_end and p[i] == 32:
                i += 1
            if i >= text_end:
                break
            start = i
            while i < text_end and p[i] != 32:
                i += 1
            if i - start > max_key:
                return wording.BAD_FORMAT
            shard = placement.locate(buf, start, i)
            part = cython.cast(Part, by_shard[shard])
            if part is None or part.size > room:
                part = Part(shard, len(self.parts))
                by_shard[shard] = part
                self.parts.append(part)
            index = part.index
            t[3 * keys] = index & 255
            t[3 * keys + 1] = index >> 8
            t[3 * keys + 2] = i - start
            keys += 1
            part.keys += 1
            part.size += i - start + 1
        if keys > max_keys or len(self.parts) > MOST_PARTS:
            return wording.TOO_MANY_KEYS
        self.keys = keys
        self.table = table
        self.buf = buf
        self.first = first
        self.text_end = text_end
        self.count = len(self.parts)
        if self.count > 1 or rewrite:
            self.write_parts(head)
        return b""

    @cython.cfunc
    def write_parts(self, head: cython.Py_ssize_t) -> cython.void:
        """Pass 2."""
        buf: bytes = self.buf
        p: cython.p_uchar = buf
        t: cython.p_uchar = self.table
        to: cython.p_uchar
        k: cython.Py_ssize_t
        i: cython.Py_ssize_t
        start: cython.Py_ssize_t
        part: Part
        # The name (and a time of expiry), without the space behind it.
        head_end: cython.Py_ssize_t = self.first
        while p[head_end - 1] == 32:
            head_end -= 1
        for part in self.parts:
            part.request = new_bytes(head_end - head + part.size + 2)
            part.cursor = copy(part.request, 0, buf, head, head_end)
            to = chars(part.request)
            to[part.cursor + part.size] = 13
            to[part.cursor + part.size + 1] = 10
        i = self.first
        for k in range(self.keys):
            while p[i] == 32:
                i += 1
            start = i
            i += t[3 * k + 2]
            part = cython.cast(Part, self.parts[t[3 * k] | (t[3 * k + 1] << 8)])
            to = chars(part.request)
            to[part.cursor] = 32
            part.cursor = copy(part.request, part.cursor + 1, buf, start, i)

    @cython.ccall
    def reduce(self, replies: list, session: Any) -> bytes:
        """The items in the client's order. By `on_partial` a failed part makes an error, or misses."""
        part: Part
        out: Any
        wrong: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        self.receive(replies, session)
        while not self.lost or session.snapshot.instance.on_partial != "error":
            out = None
            if self.count > 1:
                size = END_BYTES
                for part in self.parts:
                    size += part.end
                out = new_bytes(size)
            wrong = self.match(out)
            if wrong < 0:
                if out is None:
                    return self.parts[0].reply or wording.END
                copy(out, size - END_BYTES, wording.END, 0, END_BYTES)
                return finished(out)
            part = self.parts[wrong]
            self.lose(part, session.misfit(part.shard))
        return wording.partly(self.failure, self.lost, self.keys)

    @cython.cfunc
    def receive(self, replies: list, session: Any) -> cython.void:
        """Put the replies into their parts."""
        part: Part
        last: bytes
        for part, reply in zip(self.parts, replies, strict=True):
            part.request = None
            if not isinstance(reply, bytes):
                self.lose(part, session.error_reply(reply))
            elif reply.endswith(wording.END):
                part.reply = reply
                part.end = len(reply) - END_BYTES
            else:
                # An error, maybe behind some items: they are whole, but which keys are missing nobody knows.
                last = reply[reply.rfind(b"\n", 0, len(reply) - 1) + 1 :]
                self.lose(part, last if last.startswith(ERRORS) else session.misfit(part.shard))

    @cython.cfunc
    def lose(self, part: Part, failure: bytes) -> cython.void:
        """This part has no items; of several failures the first is told."""
        part.reply = b""
        part.end = 0
        self.lost += part.keys
        self.failure = self.failure or failure

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def match(self, out: Any) -> cython.Py_ssize_t:
        """Copy the items to `out`, if it is not None. The index of a part that has an item too many, or -1."""
        buf: bytes = self.buf
        p: cython.p_uchar = buf
        t: cython.p_uchar = self.table
        i: cython.Py_ssize_t = self.first
        at: cython.Py_ssize_t = 0
        k: cython.Py_ssize_t
        e: cython.Py_ssize_t
        start: cython.Py_ssize_t
        part: Part
        for part in self.parts:
            part.cursor = 0
        for k in range(self.keys):
            while p[i] == 32:
                i += 1
            start = i
            i += t[3 * k + 2]
            part = cython.cast(Part, self.parts[t[3 * k] | (t[3 * k + 1] << 8)])
            if part.cursor >= part.end:
                continue
            e = item_end(part.reply, part.cursor, buf, start, i)
            if e < 0:
                continue
            if out is not None:
                at = copy(out, at, part.reply, part.cursor, e)
            part.cursor = e
        for k in range(self.count):
            part = cython.cast(Part, self.parts[k])
            if part.cursor != part.end:
                return k
        return -1


@cython.ccall
@cython.exceptval(check=False)
def item_end(reply: bytes, i: cython.Py_ssize_t, key: bytes, start: cython.Py_ssize_t,
             end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index after the VALUE item at i of a well-formed reply; -1 when its key is not key[start:end]."""
    p: cython.p_uchar = reply
    n: cython.Py_ssize_t = len(reply)
    size: cython.Py_ssize_t = end - start
    after: cython.Py_ssize_t = i + ITEM_HEAD + size
    if after >= n or p[after] != 32 or p[i] != 86 or p[i + 2] != 76:
        return -1
    if cython.compiled:
        asked: cython.p_uchar = key
        if memcmp(p + i + ITEM_HEAD, asked + start, size) != 0:  # type: ignore[name-defined]  # noqa: F821
            return -1
    elif reply[i + ITEM_HEAD : after] != key[start:end]:
        return -1
    i = after + 1
    while p[i] != 32:
        i += 1
    i += 1
    size = 0
    while 48 <= p[i] <= 57:
        size = size * 10 + (p[i] - 48)
        i += 1
    while p[i] != 10:
        i += 1
    return i + size + 3
