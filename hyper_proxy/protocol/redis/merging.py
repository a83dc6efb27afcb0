# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One reply of those to the parts of a split request: the values in the client's order, a sum, or OK.

The values are not taken apart: the merge walks the parts' replies side by side and copies each value as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

if not cython.compiled:
    from hyper_proxy.common.buffers import copy, finished, new_bytes, number_at
    from hyper_proxy.protocol.redis.fanout import Part, Split, head_size, put_head

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.protocol.redis.session import RedisSession

NO_ARRAY = b"*-1\r\n"  # in the place of a reply that is of no use


def failure_of(split: Split, replies: list, session: RedisSession) -> bytes | None:
    """None when every part answered; else the reply for the whole request, which says how much of it is missing."""
    lost: cython.Py_ssize_t = 0
    first: bytes | None = None
    part: Part
    for part, reply in zip(split.parts, replies, strict=True):
        if not isinstance(reply, bytes):
            lost += part.keys
            first = first or session.error_reply(reply)
        elif reply[0] == 45:
            lost += part.keys
            first = first or reply
    if first is None:
        return None
    return b"%b (%d of %d keys)\r\n" % (first[: len(first) - 2], lost, split.keys)


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
            part.cursor = head_size(part.keys)
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
        out: Any = new_bytes(head_size(self.keys) + size)
        at: cython.Py_ssize_t = put_head(out, self.keys)
        for k in range(self.keys):
            part = cython.cast(Part, parts[number_at(notes, k) & 65535])
            end = _value_end(part.reply, part.cursor)
            if end < 0:
                return self.merge_without(part, session)
            at = copy(out, at, part.reply, part.cursor, end)
            part.cursor = end
        return finished(out)

    def reduce_partly(self, replies: list, session: RedisSession) -> bytes:
        """Some part failed: what then happens is the instance's policy."""
        policy: str = session.snapshot.instance.on_partial
        if policy == "error":
            failure = failure_of(self, replies, session)
            return self.blame(replies, session) if failure is None else failure
        size: cython.Py_ssize_t = 0
        part: Part
        for part, reply in zip(self.parts, replies, strict=True):
            part.reply = self.stand_in(part, reply, policy, session)
            part.cursor = head_size(part.keys)
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
        failure = failure_of(self, replies, session)
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
        failure = failure_of(self, replies, session)
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
    return value == keys and i + 2 == head_size(keys)
