# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Replies of a memcached (text and meta protocol, docs: protocol.txt of memcached 1.6) or a Lushan server.

One reply is a list of VALUE items up to END, a list of STAT or ITEM lines up to END, a VA line with its value, or one
line of a known form. Nothing else is accepted: a server that says anything else has lost its place, or is no memcached.
"""

import cython

if not cython.compiled:
    from hyper_proxy.conn_pool.replies import ReplyParser
from hyper_proxy.conn_pool.replies import ReplyError

MAX_VALUE_BYTES = 1 << 30  # memcached's own upper limit for an item (-I)
MAX_LINE_BYTES = 2048  # the longest of memcached's lines is a meta reply of some 600 bytes

# In the middle of which list an unfinished reply is: the meaning of `open`.
VALUES = 1
LINES = 2

WORDS = frozenset(
    (
        b"STORED", b"NOT_STORED", b"EXISTS", b"NOT_FOUND", b"DELETED", b"TOUCHED", b"OK", b"END", b"VERSION", b"RESET",
        b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR", b"HD", b"EN", b"NS", b"EX", b"NF", b"ME", b"MN",
        b"MEMLIMIT_TOO_SMALL", b"MEMLIMIT_ADJUST_FAILED",
    )
)  # fmt: skip
"""First words of replies that are one line."""

DROPPED = b"SERVER_ERROR out of memory: the reply is dropped ([proxy] max_memory)\r\n"

ERRORS = (b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR")
"""First words that may also cut off a list."""


@cython.cclass
class MemcacheParser(ReplyParser):
    """Cuts memcache replies."""

    def empty_value(self, rest: bytearray) -> bytes:
        return b"VA 0\r\n" if rest.startswith(b"VA ") else b"VALUE k 0 0\r\n"

    def apology(self) -> bytes:
        return DROPPED

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def scan(self, p: cython.p_uchar, start: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
        i: cython.Py_ssize_t = start + self.position
        listing: cython.Py_ssize_t = self.open
        e: cython.Py_ssize_t
        size: cython.Py_ssize_t
        self.position = 0
        self.open = 0
        while True:
            e = _line_end(p, i, n)
            if e < 0:
                if n - i > MAX_LINE_BYTES:
                    raise ReplyError("a line has no end")
                if i < n and not (65 <= p[i] <= 90 or 48 <= p[i] <= 57):
                    raise ReplyError("no memcache reply begins so")
                return self.wait_for(n - start + 1, i - start, listing)
            if e - i < 2 or p[e - 1] != 13:
                raise ReplyError("a line is empty or does not end in CRLF")
            if p[i] == 86 and p[i + 1] == 65 and listing != LINES:  # VALUE, VA
                size = value_size(p, i, e - 1)
                if size >= 0:
                    if listing and p[i + 2] == 32:
                        raise ReplyError("a VA line in a list")
                    if e + size + 3 > n:
                        return self.wait_for(e + size + 3 - start, i - start, listing)
                    if p[e + size + 1] != 13 or p[e + size + 2] != 10:
                        raise ReplyError("a value does not end where its length says")
                    if p[i + 2] == 32:
                        return e + size + 3
                    i = e + size + 3
                    listing = VALUES
                    continue
            if e - i > 6 and p[i + 4] == 32 and listing != VALUES and _lists(p, i):
                i = e + 1
                listing = LINES
                continue
            if listing:
                if not _ends_list(p, i, e - 1):
                    raise ReplyError("something else stands in a list")
            elif not _is_line(p, i, e - 1):
                raise ReplyError("no memcache reply begins so")
            return e + 1


@cython.ccall
@cython.exceptval(-2, check=False)
def value_size(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The length of the value behind the VALUE or VA line p[i:end]; -1 when it is another line. Raises ReplyError."""
    if p[i + 2] == 32:  # VA size flags*
        return _number(p, i + 3, end)
    if end - i < 11 or p[i + 2] != 76 or p[i + 3] != 85 or p[i + 4] != 69 or p[i + 5] != 32:
        return -1
    i += 6  # VALUE key flags size [cas]
    return _number(p, _after_word(p, _after_word(p, i, end), end), end)


@cython.cfunc
@cython.exceptval(-2, check=False)
def _after_word(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index after the word at i and the space behind it."""
    if i < end and p[i] == 32:
        raise ReplyError("a VALUE line has two spaces in a row")
    while i < end and p[i] != 32:
        i += 1
    return i + 1


@cython.cfunc
@cython.exceptval(-2, check=False)
def _number(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The length that begins at i and ends at a space or at `end`."""
    value: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = i
    while i < end and p[i] != 32:
        if not 48 <= p[i] <= 57:
            raise ReplyError("a length is not a number")
        value = value * 10 + (p[i] - 48)
        if value > MAX_VALUE_BYTES:
            raise ReplyError("a value is larger than any that memcached stores")
        i += 1
    if i <= start:
        raise ReplyError("a length is missing")
    return value


@cython.cfunc
@cython.exceptval(-2, check=False)
def _is_line(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Is p[i:end] a reply of one line: a known word, or the number that incr and decr answer?"""
    if 48 <= p[i] <= 57:
        while i < end and 48 <= p[i] <= 57:
            i += 1
        while i < end and p[i] == 32:
            i += 1
        return i == end
    if end - i == 6 and p[i] == 83 and p[i + 1] == 84 and p[i + 2] == 79:  # nearly always STORED
        return p[i + 3] == 82 and p[i + 4] == 69 and p[i + 5] == 68
    return _is_end(p, i, end) or _first_word(p, i, end) in WORDS


@cython.cfunc
@cython.exceptval(-2, check=False)
def _ends_list(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    return _is_end(p, i, end) or _first_word(p, i, end) in ERRORS


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _line_end(p: cython.p_uchar, i: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index of the next LF, or -1."""
    if cython.compiled:
        at: cython.p_void = memchr(p + i, 10, n - i)  # type: ignore[name-defined]  # noqa: F821
        return -1 if at == cython.NULL else cython.cast(cython.p_uchar, at) - p
    else:
        return p.find(b"\n", i, n)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _lists(p: cython.p_uchar, i: cython.Py_ssize_t) -> cython.bint:
    """Is the word at i, of four bytes, STAT or ITEM?"""
    if p[i] == 83:
        return p[i + 1] == 84 and p[i + 2] == 65 and p[i + 3] == 84
    return p[i] == 73 and p[i + 1] == 84 and p[i + 2] == 69 and p[i + 3] == 77


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_end(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    return end - i == 3 and p[i] == 69 and p[i + 1] == 78 and p[i + 2] == 68


@cython.cfunc
def _first_word(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
    """The word at i; the colon of "ERROR: shutdown not enabled" does not belong to it."""
    e: cython.Py_ssize_t = i
    while e < end and p[e] != 32 and p[e] != 58:
        e += 1
    return bytes(p[i:e])
