# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Split a multi-key request by shard, without an object per key; merging.py makes one reply of the parts' replies.

Pass 1 locates every key and adds up what each shard's request will need; pass 2 copies the keys into one exactly sized
buffer per shard.
"""

from __future__ import annotations

from typing import Any

import cython

if not cython.compiled:
    from hyper_proxy.common.buffers import chars, copy, new_bytearray, new_bytes, number_at, put_number
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.tunnel.batch import Reducer

FEW_SHARDS = 1024
NO_SLOTS: dict = {}  # stays empty


@cython.cclass
class Part:
    """What goes to one shard: `keys` of them in `request`, and what came back."""

    shard: cython.Py_ssize_t
    number: cython.Py_ssize_t  # among the parts
    keys: cython.Py_ssize_t
    request: Any  # see new_bytes; None when the client's request can travel as it came
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
    notes: bytearray  # a number for each key: that of its part, and the bytes of its words << 16
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
        notes: bytearray = new_bytearray(8 * keys)
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
            put_number(s, k, part.number | (i - start) << 16)
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
            part.request = new_bytes(head_size(words) + verb_end - args + part.size)
            part.cursor = copy(part.request, put_head(part.request, words), buf, args, verb_end)
        for k in range(self.keys):
            note = number_at(notes, k)
            part = cython.cast(Part, parts[note & 65535])
            end = start + (note >> 16)
            part.cursor = copy(part.request, part.cursor, buf, start, end)
            start = end


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
@cython.exceptval(check=False)
def head_size(count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many bytes the head of an array takes: "*", the count, CRLF."""
    size: cython.Py_ssize_t = 4
    while count >= 10:
        count //= 10
        size += 1
    return size


@cython.cfunc
@cython.exceptval(check=False)
def put_head(out: Any, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Write the head of an array at the front; the index after it."""
    p: cython.p_uchar = chars(out)
    size: cython.Py_ssize_t = head_size(count)
    i: cython.Py_ssize_t = size - 3
    p[0] = 42
    p[size - 2] = 13
    p[size - 1] = 10
    while i > 0:
        p[i] = 48 + count % 10
        count //= 10
        i -= 1
    return size
