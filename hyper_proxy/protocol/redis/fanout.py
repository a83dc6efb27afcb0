# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Split a multi-key request by shard and merge the answers by the client's positions, without an object per key.

Pass 1 locates every key and adds up what each shard's request will need; pass 2 copies the keys into one exactly sized
buffer per shard. The merge walks the answers side by side, in the client's order.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import cython

if not cython.compiled:
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.tunnel.batch import Reducer

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.protocol.redis.session import RedisSession

FEW_SHARDS = 1024
NO_SLOTS: dict = {}  # stays empty
NO_ARRAY = b"*-1\r\n"  # in the place of a reply that is of no use


@cython.cclass
class Part:
    """What goes to one shard: `keys` of them in `request`, and what came back."""

    shard: cython.Py_ssize_t
    number: cython.Py_ssize_t  # among the parts
    keys: cython.Py_ssize_t
    request: Any  # see _buffer; None when the client's request can travel as it came
    reply: bytes
    size: cython.Py_ssize_t  # bytes that the keys take in the request
    cursor: cython.Py_ssize_t  # how far the request is written, then how far the reply is read


@cython.cfunc
@cython.inline
def _new_part(shard: cython.Py_ssize_t, number: cython.Py_ssize_t) -> Part:
    part: Part = Part.__new__(Part)  # no __init__: its call alone would cost as much as locating the key
    part.shard = shard
    part.number = number
    part.keys = part.size = part.cursor = 0
    part.request = None
    part.reply = b""
    return part


@cython.cclass
class Split(Reducer):
    """A request that was split; `parts` are in the order in which their slots are opened."""

    parts: list
    keys: cython.Py_ssize_t
    longest: cython.Py_ssize_t  # bytes of the longest key
    notes: bytearray  # eight bytes a key: the number of its part, and the bytes of its words << 16
    words_per_key: cython.int

    @cython.cfunc
    def fresh(self) -> Split:
        """A new, empty one of the same kind."""
        raise NotImplementedError

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def cut(self, buf: bytes, args: cython.Py_ssize_t, argc: cython.Py_ssize_t, placement: Placement) -> cython.bint:
        """Fill `parts` from the request whose first "$" is at `args`; the verb's word is repeated in every part.

        False when all keys are on one shard: then the request can travel as it came, to parts[0].shard.
        """
        p: cython.p_uchar = buf
        words_per_key: cython.int = self.words_per_key
        keys: cython.Py_ssize_t = (argc - 1) // words_per_key
        parts: list = []
        # The part of each shard. The slots of a cluster are far more than keys are asked for.
        few: cython.bint = placement.shards <= FEW_SHARDS
        by_shard: list = [None] * placement.shards if few else []
        by_slot: dict = NO_SLOTS if few else {}
        notes: bytearray = _zeros(8 * keys)
        s: cython.p_uchar = notes
        part: Part | None
        verb_end: cython.Py_ssize_t = _word_end(p, args)
        i: cython.Py_ssize_t = verb_end
        k: cython.Py_ssize_t
        start: cython.Py_ssize_t
        size: cython.Py_ssize_t
        shard: cython.Py_ssize_t
        _: cython.int
        longest: cython.Py_ssize_t = 0
        for k in range(keys):
            start = i
            size = 0
            i += 1
            while p[i] != 13:
                size = size * 10 + (p[i] - 48)
                i += 1
            shard = placement.locate(buf, i + 2, i + 2 + size)
            i += 4 + size
            if size > longest:
                longest = size
            for _ in range(1, words_per_key):
                i = _word_end(p, i)
            part = by_shard[shard] if few else by_slot.get(shard)
            if part is None:
                part = _new_part(shard, len(parts))
                if few:
                    by_shard[shard] = part
                else:
                    by_slot[shard] = part
                parts.append(part)
            _note(s, k, part.number, i - start)
            part.keys += 1
            part.size += i - start
        self.keys = keys
        self.longest = longest
        self.notes = notes
        self.parts = parts
        self.count = len(parts)
        if self.count == 1:
            return False
        self.write_parts(buf, args, verb_end)
        return True

    @cython.cfunc
    def write_parts(self, buf: bytes, args: cython.Py_ssize_t, verb_end: cython.Py_ssize_t) -> None:
        """Pass 2: every part's request, the verb first."""
        notes: cython.p_uchar = self.notes
        parts: list = self.parts
        part: Part
        words: cython.Py_ssize_t
        start: cython.Py_ssize_t = verb_end
        end: cython.Py_ssize_t
        note: cython.ulonglong
        k: cython.Py_ssize_t
        for k in range(self.count):
            part = cython.cast(Part, parts[k])
            words = part.keys * self.words_per_key + 1
            part.request = _buffer(_head_size(words) + verb_end - args + part.size)
            part.cursor = _copy(part.request, _put_head(part.request, words), buf, args, verb_end)
        for k in range(self.keys):
            note = _noted(notes, k)
            part = cython.cast(Part, parts[note & 65535])
            end = start + (note >> 16)
            part.cursor = _copy(part.request, part.cursor, buf, start, end)
            start = end

    def failure(self, replies: list, session: RedisSession) -> bytes | None:
        """None when every part answered; else the reply for the whole request, which says how much of it is missing."""
        lost: cython.Py_ssize_t = 0
        first: bytes | None = None
        part: Part
        for part, reply in zip(self.parts, replies, strict=True):
            if not isinstance(reply, bytes):
                lost += part.keys
                first = first or session.error_reply(reply)
            elif reply[0] == 45:
                lost += part.keys
                first = first or reply
        if first is None:
            return None
        return b"%b (%d of %d keys)\r\n" % (first[: len(first) - 2], lost, self.keys)


@cython.cclass
class ByPosition(Split):
    """MGET: the values in the order of the client's keys."""

    @cython.cfunc
    def fresh(self) -> Split:
        split: ByPosition = ByPosition.__new__(ByPosition)
        split.words_per_key = 1
        return split

    @cython.ccall
    def reduce(self, replies: list, session: RedisSession) -> bytes:
        k: cython.Py_ssize_t
        size: cython.Py_ssize_t = 0
        part: Part
        for k in range(self.count):
            part = cython.cast(Part, self.parts[k])
            reply = replies[k]
            if not isinstance(reply, bytes) or not _is_array_of(reply, part.keys):
                return self.reduce_partly(replies, session)
            part.reply = reply
            part.cursor = _head_size(part.keys)
            size += len(part.reply) - part.cursor
        return self.merge(session, size)

    @cython.cfunc
    def merge(self, session: RedisSession, size: cython.Py_ssize_t) -> bytes:
        """The parts' values side by side; `size` is what they take together."""
        notes: cython.p_uchar = self.notes
        parts: list = self.parts
        part: Part
        k: cython.Py_ssize_t
        end: cython.Py_ssize_t
        out: Any = _buffer(_head_size(self.keys) + size)
        at: cython.Py_ssize_t = _put_head(out, self.keys)
        for k in range(self.keys):
            part = cython.cast(Part, parts[_noted(notes, k) & 65535])
            end = _value_end(part.reply, part.cursor)
            if end < 0:
                return self.merge_without(part, session)
            at = _copy(out, at, part.reply, part.cursor, end)
            part.cursor = end
        return _finished(out)

    def reduce_partly(self, replies: list, session: RedisSession) -> bytes:
        """Some part failed: what then happens is the instance's policy."""
        policy: str = session.snapshot.instance.on_partial
        if policy == "error":
            failure = self.failure(replies, session)
            return self.blame(replies, session) if failure is None else failure
        size: cython.Py_ssize_t = 0
        part: Part
        for part, reply in zip(self.parts, replies, strict=True):
            part.reply = self.stand_in(part, reply, policy, session)
            part.cursor = _head_size(part.keys)
            size += len(part.reply) - part.cursor
        return self.merge(session, size)

    def merge_without(self, wrong: Part, session: RedisSession) -> bytes:
        """A part holds something that is no value of a key: the policy decides again, without that part."""
        part: Part
        replies: list = []
        for part in self.parts:
            replies.append(part.reply if part is not wrong else NO_ARRAY)
        return self.reduce_partly(replies, session)

    def blame(self, replies: list, session: RedisSession) -> bytes:
        """The error for the first node whose reply does not fit."""
        part: Part
        for part, reply in zip(self.parts, replies, strict=True):
            if not _is_array_of(reply, part.keys):
                return session.misfit(part.shard)
        raise ValueError("every reply fits")

    def stand_in(self, part: Part, reply: bytes | BackendError, policy: str, session: RedisSession) -> bytes:
        """What takes the place of the values of a part that failed: nil, or its error, once for each key."""
        if isinstance(reply, bytes) and _is_array_of(reply, part.keys):
            return reply
        if not isinstance(reply, bytes):
            element = session.error_reply(reply)
        else:
            element = reply if reply[0] == 45 else session.misfit(part.shard)
        if policy == "nil":
            element = session.nil()
        return b"*%d\r\n%b" % (part.keys, element * part.keys)


@cython.cclass
class Sum(Split):
    """DEL, UNLINK, TOUCH, EXISTS: how many in all."""

    @cython.cfunc
    def fresh(self) -> Split:
        split: Sum = Sum.__new__(Sum)
        split.words_per_key = 1
        return split

    @cython.ccall
    def reduce(self, replies: list, session: RedisSession) -> bytes:
        total: cython.Py_ssize_t = 0
        failure = self.failure(replies, session)
        if failure is not None:
            return failure
        for part, reply in zip(self.parts, replies, strict=True):
            count: bytes = reply[1 : len(reply) - 2]
            if reply[0] != 58 or not count.isdigit() or len(count) > 18:  # a sum of such numbers is in the range
                return session.misfit(part.shard)
            total += int(count)
        return b":%d\r\n" % total


@cython.cclass
class AllOk(Split):
    """MSET: OK when every shard said so."""

    @cython.cfunc
    def fresh(self) -> Split:
        split: AllOk = AllOk.__new__(AllOk)
        split.words_per_key = 2
        return split

    @cython.ccall
    def reduce(self, replies: list, session: RedisSession) -> bytes:
        failure = self.failure(replies, session)
        if failure is not None:
            return failure
        for part, reply in zip(self.parts, replies, strict=True):
            if reply != b"+OK\r\n":
                return session.misfit(part.shard)
        return b"+OK\r\n"


# By the name of the reducer in the command table; `fresh` makes one for a request.
SPLITS = {"by_position": ByPosition(), "sum": Sum(), "all_ok": AllOk()}


@cython.cfunc
@cython.inline
def _note(notes: cython.p_uchar, k: cython.Py_ssize_t, number: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
    """Write down what is known of the key number k: see Split.notes."""
    note: cython.ulonglong = number | (size << 16)
    if cython.compiled:
        memcpy(notes + 8 * k, cython.address(note), 8)  # type: ignore[name-defined]  # noqa: F821
    else:
        notes[8 * k : 8 * k + 8] = note.to_bytes(8, sys.byteorder)


@cython.cfunc
@cython.inline
def _noted(notes: cython.p_uchar, k: cython.Py_ssize_t) -> cython.ulonglong:
    """What `_note` has written: the number of the part, and the size << 16."""
    if cython.compiled:
        note: cython.ulonglong = 0
        memcpy(cython.address(note), notes + 8 * k, 8)  # type: ignore[name-defined]  # noqa: F821
        return note
    else:
        return int.from_bytes(notes[8 * k : 8 * k + 8], sys.byteorder)


@cython.cfunc
@cython.inline
def _word_end(p: cython.p_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index after the word whose "$" is at i; the request is known to be whole."""
    value: cython.Py_ssize_t = 0
    i += 1
    while p[i] != 13:
        value = value * 10 + (p[i] - 48)
        i += 1
    return i + value + 4


@cython.cfunc
@cython.inline
def _value_end(data: bytes, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index after the string, nil or error at i of a whole array; -1 when something else is there."""
    p: cython.p_uchar = data
    n: cython.Py_ssize_t = len(data)
    value: cython.Py_ssize_t = 0
    if i >= n:
        return -1
    if p[i] == 36 and p[i + 1] != 45:
        i += 1
        while p[i] != 13:
            value = value * 10 + (p[i] - 48)
            i += 1
        i += value + 4
        return i if i <= n else -1
    if p[i] != 36 and p[i] != 95 and p[i] != 45:
        return -1
    while p[i] != 10:
        i += 1
    return i + 1


@cython.cfunc
@cython.inline
def _is_array_of(reply: bytes, keys: cython.Py_ssize_t) -> cython.bint:
    """Is it an array with one element for each of so many keys?"""
    p: cython.p_uchar = reply
    i: cython.Py_ssize_t = 1
    value: cython.Py_ssize_t = 0
    if p[0] != 42:
        return False
    while 48 <= p[i] <= 57:
        value = value * 10 + (p[i] - 48)
        i += 1
    return value == keys and i + 2 == _head_size(keys)


@cython.cfunc
@cython.inline
def _head_size(count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many bytes the head of an array takes: "*", the count, CRLF."""
    size: cython.Py_ssize_t = 4
    while count >= 10:
        count //= 10
        size += 1
    return size


@cython.cfunc
@cython.inline
def _put_head(out: Any, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Write the head of an array at the front; the index after it."""
    if cython.compiled:
        filled: bytes = cython.cast(bytes, out)
        p: cython.p_uchar = filled
    else:
        p = out
    size: cython.Py_ssize_t = _head_size(count)
    i: cython.Py_ssize_t = size - 3
    p[0] = 42
    p[size - 2] = 13
    p[size - 1] = 10
    while i > 0:
        p[i] = 48 + count % 10
        count //= 10
        i -= 1
    return size


@cython.cfunc
@cython.inline
def _zeros(size: cython.Py_ssize_t) -> bytearray:
    """A bytearray; compiled without the call of its type, and without the zeros."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)  # type: ignore[name-defined]  # noqa: F821
    else:
        return bytearray(size)


@cython.cfunc
@cython.inline
def _buffer(size: cython.Py_ssize_t) -> Any:
    """Something to fill with exactly so many bytes: compiled, a bytes object that nobody else has seen yet."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.NULL, size)  # type: ignore[name-defined]  # noqa: F821
    else:
        return bytearray(size)


@cython.cfunc
@cython.inline
def _finished(out: Any) -> bytes:
    """The bytes of a filled buffer."""
    return cython.cast(bytes, out) if cython.compiled else bytes(out)


@cython.cfunc
@cython.inline
def _copy(out: Any, at: cython.Py_ssize_t, data: bytes, start: cython.Py_ssize_t,
          end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Copy data[start:end] to out[at:]; the index after it."""
    if cython.compiled:
        filled: bytes = cython.cast(bytes, out)
        to: cython.p_uchar = filled
        source: cython.p_uchar = data
        memcpy(to + at, source + start, end - start)  # type: ignore[name-defined]  # noqa: F821
    else:
        out[at : at + end - start] = data[start:end]
    return at + end - start
