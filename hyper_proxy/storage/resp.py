# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Replies of a redis server, RESP2 and RESP3 (https://redis.io/docs/latest/develop/reference/protocol-spec/).

Only ends are found, no value is made: replies travel on as they came. Nested replies are walked with a counter of the
values that are still missing, so depth costs nothing and a scan can stop and go on anywhere.
"""

import cython

if not cython.compiled:
    from hyper_proxy.conn_pool.replies import ReplyParser
from hyper_proxy.conn_pool.replies import ReplyError

MAX_BULK_BYTES = 1 << 30  # twice what a redis server stores in one value: more is nonsense
MAX_LINE_BYTES = 1 << 20  # a status or error line: a script may return a long one
MAX_ELEMENTS = 1 << 32
MAX_DIGITS = 12  # of a length: those that are taken have fewer, and so many can't overflow

DROPPED = b"-ERR the reply is dropped: the proxy has no memory for it ([proxy] max_memory)\r\n"


@cython.cfunc
@cython.exceptval(-2, check=False)
def _number(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The length in p[i:end], end being the index of CR; -1 for a nil. Raises ReplyError."""
    value: cython.Py_ssize_t = 0
    if p[i] == 45 and end - i == 2 and p[i + 1] == 49:
        return -1
    if i == end or end - i > MAX_DIGITS:
        raise ReplyError("a length is missing or too long")
    while i < end:
        if not 48 <= p[i] <= 57:
            raise ReplyError("a length is not a number")
        value = value * 10 + (p[i] - 48)
        i += 1
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _short(p: cython.p_uchar, i: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The length of a string of 10 to 99 bytes, as most are, whose head is at i; -1 when it is anything else."""
    if i + 5 > n or p[i] != 36 or p[i + 3] != 13 or p[i + 4] != 10:
        return -1
    if not 49 <= p[i + 1] <= 57 or not 48 <= p[i + 2] <= 57:
        return -1
    return 10 * (p[i + 1] - 48) + (p[i + 2] - 48)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _line_end(p: cython.p_uchar, i: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index of the next LF; n or more when there is none. Lines are short: compiled, a call would cost more."""
    if cython.compiled:
        while i < n and p[i] != 10:
            i += 1
        return i
    else:
        end: int = p.find(b"\n", i, n)
        return end if end >= 0 else n


@cython.cclass
class RespParser(ReplyParser):
    """Cuts redis replies. `open` counts the values that the unfinished reply still lacks."""

    def empty_value(self, rest: bytearray) -> bytes:
        return b"$0\r\n"

    def apology(self) -> bytes:
        return DROPPED

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def scan(self, p: cython.p_uchar, start: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
        i: cython.Py_ssize_t = start + self.position
        left: cython.Py_ssize_t = self.open if self.open else 1
        e: cython.Py_ssize_t
        size: cython.Py_ssize_t
        kind: cython.uchar
        self.position = 0
        self.open = 0
        while left:
            size = _short(p, i, n)
            if size >= 0 and i + size + 7 <= n and p[i + size + 5] == 13 and p[i + size + 6] == 10:
                i += size + 7
                left -= 1
                continue
            e = _line_end(p, i + 1, n)
            if e >= n:
                if e - i > MAX_LINE_BYTES:
                    raise ReplyError("a line has no end")
                if i < n and p[i] not in b"$+:*-_%~#,(=!|>":
                    raise ReplyError("no redis reply begins so")
                return self.wait_for(n - start + 1, i - start, left)
            if p[e - 1] != 13:
                raise ReplyError("a line does not end in CRLF")
            kind = p[i]
            if kind == 36 or kind == 61 or kind == 33:  # $ bulk string, = verbatim string, ! bulk error
                size = _number(p, i + 1, e - 1)
                if size > MAX_BULK_BYTES:
                    raise ReplyError("a value is larger than any that redis stores")
                if size >= 0:
                    if e + size + 3 > n:
                        return self.wait_for(e + size + 3 - start, i - start, left)
                    if p[e + size + 1] != 13 or p[e + size + 2] != 10:
                        raise ReplyError("a value does not end where its length says")
                    e += size + 2
                left -= 1
            elif kind == 42 or kind == 126 or kind == 62:  # * array, ~ set, > push
                size = _number(p, i + 1, e - 1)
                left += size - 1 if size >= 0 else -1
            elif kind == 37 or kind == 124:  # % map, | attribute: pairs; an attribute stands before the value itself
                size = _number(p, i + 1, e - 1)
                if size < 0:
                    raise ReplyError("a map has a negative length")
                left += 2 * size - (kind == 37)
            elif kind == 43 or kind == 45 or kind == 58 or kind == 95 or kind == 35 or kind == 44 or kind == 40:
                left -= 1  # + - : _ # , (
            else:
                raise ReplyError("no redis reply begins so")
            if left > MAX_ELEMENTS:
                raise ReplyError("an array is larger than any that redis sends")
            i = e + 1
        return i
