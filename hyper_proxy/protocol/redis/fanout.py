# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Split a multi-key request by shard and merge the answers by the client's positions, without an object per key.

Pass 1 locates every key and adds up what each shard's request will need; pass 2 copies the keys into one exactly sized
buffer per shard. The merge walks the answers side by side, in the client's order.
"""

import cython

if not cython.compiled:
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.protocol.session import Reducer, Session


@cython.cclass
class Part:
    """What goes to one shard: `keys` of them in `request`."""

    def __init__(self, shard: cython.Py_ssize_t) -> None:
        self.shard = shard
        self.keys = 0
        self.request = None
        self.size = 0
        self.cursor = 0


@cython.cclass
class Split(Reducer):
    """A request that was split; `parts` are in the order in which their slots are opened."""

    def __init__(self, words_per_key: int) -> None:
        self.words_per_key = words_per_key
        self.parts: list = []
        self.keys = 0
        self.count = 0
        self.shards = None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def cut(self, buf: bytes, args: cython.Py_ssize_t, argc: cython.Py_ssize_t, placement: Placement) -> cython.bint:
        """Fill `parts` from the request whose first "$" is at `args`; the verb's word is repeated in every part.

        False when all keys are on one shard: then the request can travel as it came, to parts[0].shard.
        """
        p: cython.p_uchar = buf
        words_per_key: cython.int = self.words_per_key
        keys: cython.Py_ssize_t = (argc - 1) // words_per_key
        by_shard: list = [None] * placement.shards
        shards: bytearray = bytearray(2 * keys)
        s: cython.p_uchar = shards
        part: Part
        verb_end: cython.Py_ssize_t = _word_end(p, args)
        i: cython.Py_ssize_t = verb_end
        k: cython.Py_ssize_t
        start: cython.Py_ssize_t
        body: cython.Py_ssize_t
        shard: cython.Py_ssize_t
        w: cython.int
        for k in range(keys):
            start = i
            i = _word_end(p, i)
            body = start + 2
            while p[body] != 10:
                body += 1
            shard = placement.locate(buf, body + 1, i - 2)
            for w in range(1, words_per_key):
                i = _word_end(p, i)
            s[2 * k] = shard & 255
            s[2 * k + 1] = shard >> 8
            if by_shard[shard] is None:
                part = Part(shard)
                by_shard[shard] = part
                self.parts.append(part)
            else:
                part = cython.cast(Part, by_shard[shard])
            part.keys += 1
            part.size += i - start
        self.keys = keys
        self.shards = shards
        self.count = len(self.parts)
        if self.count == 1:
            return False
        verb_size: cython.Py_ssize_t = verb_end - args
        for part in self.parts:
            head: bytes = b"*%d\r\n" % (part.keys * words_per_key + 1)
            part.request = bytearray(len(head) + verb_size + part.size)
            part.cursor = _copy(part.request, 0, head, 0, len(head))
            part.cursor = _copy(part.request, part.cursor, buf, args, verb_end)
        i = verb_end
        for k in range(keys):
            start = i
            for w in range(words_per_key):
                i = _word_end(p, i)
            part = cython.cast(Part, by_shard[s[2 * k] | (s[2 * k + 1] << 8)])
            part.cursor = _copy(part.request, part.cursor, buf, start, i)
        return True

    def failure(self, replies: list, session: Session) -> object:
        """None when every part answered; else the reply for the whole request, which says how much of it is missing."""
        lost: cython.Py_ssize_t = 0
        first: object = None
        part: Part
        for part, reply in zip(self.parts, replies):
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

    @cython.ccall
    def reduce(self, replies: list, session: Session) -> bytes:
        size: cython.Py_ssize_t = 0
        shards: cython.p_uchar = self.shards
        k: cython.Py_ssize_t
        e: cython.Py_ssize_t
        part: Part
        by_shard: list = [None] * session.snapshot.placement.shards
        lost: cython.bint = False
        for part, reply in zip(self.parts, replies):
            if not isinstance(reply, bytes) or not _is_array_of(reply, part):
                lost = True
        if lost:
            policy: str = session.snapshot.instance.on_partial
            if policy == "error":
                return self.failure(replies, session) or session.misfit(self.parts[0].shard)
            replies = [self.stand_in(part, reply, policy, session) for part, reply in zip(self.parts, replies)]
        for k in range(self.count):
            part = cython.cast(Part, self.parts[k])
            part.request = None
            data: bytes = replies[k]
            part.cursor = data.index(b"\n") + 1
            size += len(data) - part.cursor
            by_shard[part.shard] = k
        head: bytes = b"*%d\r\n" % self.keys
        out: bytearray = bytearray(len(head) + size)
        at: cython.Py_ssize_t = _copy(out, 0, head, 0, len(head))
        index: cython.Py_ssize_t
        for k in range(self.keys):
            index = by_shard[shards[2 * k] | (shards[2 * k + 1] << 8)]
            part = cython.cast(Part, self.parts[index])
            data = cython.cast(bytes, replies[index])
            e = _value_end(data, part.cursor)
            if e < 0:
                return session.misfit(part.shard)
            at = _copy(out, at, data, part.cursor, e)
            part.cursor = e
        return bytes(out)

    def stand_in(self, part: Part, reply: object, policy: str, session: Session) -> bytes:
        """What takes the place of the values of a part that failed: nil, or its error, once for each key."""
        if isinstance(reply, bytes) and _is_array_of(reply, part):
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

    @cython.ccall
    def reduce(self, replies: list, session: Session) -> bytes:
        total: cython.Py_ssize_t = 0
        failure = self.failure(replies, session)
        if failure is not None:
            return failure
        for reply in replies:
            if reply[0] != 58:
                return session.misfit(self.parts[0].shard)
            total += int(reply[1 : len(reply) - 2])
        return b":%d\r\n" % total


@cython.cclass
class AllOk(Split):
    """MSET: OK when every shard said so."""

    @cython.ccall
    def reduce(self, replies: list, session: Session) -> bytes:
        return self.failure(replies, session) or replies[0]


SPLITS = {"by_position": (ByPosition, 1), "sum": (Sum, 1), "all_ok": (AllOk, 2)}


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
def _is_array_of(reply: bytes, part: Part) -> cython.bint:
    """Is it an array with one element for each key of the part?"""
    p: cython.p_uchar = reply
    i: cython.Py_ssize_t = 1
    value: cython.Py_ssize_t = 0
    if p[0] != 42:
        return False
    while 48 <= p[i] <= 57:
        value = value * 10 + (p[i] - 48)
        i += 1
    return value == part.keys


@cython.cfunc
@cython.inline
def _copy(out: bytearray, at: cython.Py_ssize_t, data: bytes, start: cython.Py_ssize_t,
          end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Copy data[start:end] to out[at:]; the index after it."""
    if cython.compiled:
        to: cython.p_uchar = out
        source: cython.p_uchar = data
        memcpy(to + at, source + start, end - start)  # noqa: F821
    else:
        out[at : at + end - start] = data[start:end]
    return at + end - start
