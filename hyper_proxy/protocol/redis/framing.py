# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Where a redis request ends, and where its verb and its first argument are; nothing is copied.

Format: https://redis.io/docs/latest/develop/reference/protocol-spec/ ("Sending commands"), and the inline form of one
line. Errors have redis' own words; and as redis does, the two bytes behind a word are skipped unseen.
"""

import cython

from hyper_proxy.common.errors import ClientError, LimitExceeded
from hyper_proxy.storage.redis import join_words as join_words

# What the number of a length counts, words or bytes: redis' text where it is wrong, and the limit that it is within.
COUNTED = (("invalid multibulk length", "max_arguments"), ("invalid bulk length", "max_value_bytes"))
TLS_HANDSHAKE = 0x16  # a client's first byte; it would wait for ever for the answer to what is no line
MAX_COUNT_LINE = 32  # bytes: more than "*" and any number of 64 bits need


def _protocol_error(text: str) -> ClientError:
    return ClientError(f"Protocol error: {text}")


def _beyond(text: str, limit: str, most: int, before_auth: bool) -> ClientError:
    """Redis' words, behind which stands the limit of the instance that is meant."""
    said = f"more than {most} before AUTH" if before_auth else f"more than limits.{limit} ({most})"
    return LimitExceeded(limit, f"Protocol error: {text}: {said}")


@cython.cclass
class Framer:
    """Finds requests in a buffer; after `scan` its attributes describe the request that was found.

    argc                    number of words; 0 for an empty request, which has no answer
    name_start, name_end    the verb
    key_start, key_end      the word after it, where most commands have their key; equal when there is none
    args                    the index of the verb's own "$"
    inline                  the request is one line; the other attributes are not set
    need                    after -1: how many bytes from the request's start must be there before another scan
    before_auth             its limits of words and their bytes are those of a client that has not logged in
    """

    before_auth: cython.bint
    need: cython.Py_ssize_t
    argc: cython.Py_ssize_t
    name_start: cython.Py_ssize_t
    name_end: cython.Py_ssize_t
    key_start: cython.Py_ssize_t
    key_end: cython.Py_ssize_t
    args: cython.Py_ssize_t
    inline: cython.bint
    max_arguments: cython.Py_ssize_t
    max_bulk: cython.Py_ssize_t
    max_line: cython.Py_ssize_t
    length: cython.Py_ssize_t  # the one that was read last
    position: cython.Py_ssize_t  # where an unfinished scan goes on, from the request's start
    open: cython.Py_ssize_t  # words that it still lacks

    def __init__(self, max_arguments: int, max_bulk: int, max_line: int) -> None:
        self.max_arguments = max_arguments
        self.max_bulk = max_bulk
        self.max_line = max_line
        self.before_auth = False
        self.need = self.argc = self.args = self.length = 0
        self.name_start = self.name_end = self.key_start = self.key_end = 0
        self.inline = False
        self.position = 0
        self.open = 0

    @cython.ccall
    @cython.exceptval(-2, check=False)
    def scan(self, buf: bytes | bytearray, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The index after the request that begins at `start`; -1 when it is not whole. Raises a ClientError.

        buf: bytes, or the same request's bytes in a bytearray that grows: a scan goes on where the one before it ended.
        """
        p: cython.p_uchar = buf
        n: cython.Py_ssize_t = len(buf)
        i: cython.Py_ssize_t
        body: cython.Py_ssize_t
        left: cython.Py_ssize_t
        if p[start] != 42:
            return self.scan_line(buf, start)
        self.inline = False
        if self.open:
            i = start + self.position
            left = self.open
            self.open = 0
        else:
            if start + 1 < n and p[start + 1] == 45:
                return self.scan_nothing(buf, start)
            i = _read_length(self, p, start, n, self.max_arguments, 0)
            if i < 0:
                return self.wait_for(n + 1 - start, 0, 0)
            self.argc = left = self.length
            self.args = i - start
            self.name_start = self.name_end = self.key_start = self.key_end = 0
        while left:
            if i >= n:
                return self.wait_for(n + 1 - start, i - start, left)
            if p[i] != 36:
                raise _protocol_error(f"expected '$', got '{chr(p[i])}'")
            body = _read_length(self, p, i, n, self.max_bulk, 1)
            if body < 0:
                return self.wait_for(n + 1 - start, i - start, left)
            if body + self.length + 2 > n:
                return self.wait_for(body + self.length + 2 - start, i - start, left)
            i = body + self.length + 2
            if left == self.argc:
                self.name_start = body - start
                self.name_end = i - 2 - start
            elif left == self.argc - 1:
                self.key_start = body - start
                self.key_end = i - 2 - start
            left -= 1
        self.position = 0
        # Relative so far, since the buffer may have moved between two scans of one request.
        self.name_start += start
        self.name_end += start
        self.key_start += start
        self.key_end += start
        self.args += start
        return i

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def scan_line(self, buf: bytes | bytearray, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """An inline request: one line."""
        if buf[start] == TLS_HANDSHAKE:
            raise _protocol_error("TLS is not served: let the client connect without")
        end: cython.Py_ssize_t = buf.find(b"\n", start)
        if (end < 0 and len(buf) - start > self.max_line) or end - start > self.max_line:
            raise _beyond("too big inline request", "max_line_bytes", self.max_line, False)
        if end < 0:
            return self.wait_for(len(buf) - start + 1, 0, 0)
        self.inline = True
        self.argc = 1
        return end + 1

    def scan_nothing(self, buf: bytes | bytearray, start: int) -> int:
        """A negative number of words: redis reads it and does nothing."""
        end = buf.find(b"\r\n", start)
        if end < 0:
            if len(buf) - start > MAX_COUNT_LINE:
                raise _protocol_error("invalid multibulk length")
            return self.wait_for(len(buf) - start + 1, 0, 0)
        if not buf[start + 2 : end].isdigit():
            raise _protocol_error("invalid multibulk length")
        self.argc = 0
        return end + 2

    @cython.cfunc
    def wait_for(
        self, need: cython.Py_ssize_t, position: cython.Py_ssize_t, open: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        self.need = need
        self.position = position
        self.open = open
        return -1


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=False)
def _read_length(
    framer: Framer, p: cython.p_uchar, i: cython.Py_ssize_t, n: cython.Py_ssize_t, most: cython.Py_ssize_t,
    kind: cython.int,
) -> cython.Py_ssize_t:
    """Read the number behind the "*" or "$" at i into framer.length; the index after its line, -1 if that is not whole.

    kind: an index of COUNTED. Raises a ClientError.
    """
    value: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = i + 1
    if i + 4 < n and p[i + 3] == 13 and p[i + 4] == 10 and 49 <= p[i + 1] <= 57 and 48 <= p[i + 2] <= 57:
        value = 10 * (p[i + 1] - 48) + (p[i + 2] - 48)  # most words and requests have 10 to 99
        if value <= most:
            framer.length = value
            return i + 5
        value = 0
    while end < n and 48 <= p[end] <= 57:
        value = value * 10 + (p[end] - 48)
        end += 1
        if value > most:
            if p[i + 1] == 48:
                break  # wrong, whatever number it is
            raise _beyond(COUNTED[kind][0], COUNTED[kind][1], most, framer.before_auth)
    if end - i > 2 and p[i + 1] == 48:  # a server would hang up, on everybody who shares the connection
        raise _protocol_error(COUNTED[kind][0])
    if end + 1 >= n:
        if end < n and p[end] != 13:
            raise _protocol_error(COUNTED[kind][0])
        return -1
    if p[end] != 13 or p[end + 1] != 10 or end == i + 1:
        raise _protocol_error(COUNTED[kind][0])
    framer.length = value
    return end + 2


@cython.ccall
def words(buf: bytes, args: cython.Py_ssize_t, end: cython.Py_ssize_t) -> list:
    """The words of a whole request, from its first "$" at `args` on."""
    p: cython.p_uchar = buf
    out: list = []
    value: cython.Py_ssize_t
    while args < end:
        value = 0
        args += 1
        while p[args] != 13:
            value = value * 10 + (p[args] - 48)
            args += 1
        args += 2
        out.append(buf[args : args + value])
        args += value + 2
    return out


@cython.ccall
@cython.exceptval(check=False)
def given_bytes(buf: bytes, args: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The length of `count` words of a whole request, from the "$" at `args` on, together."""
    p: cython.p_uchar = buf
    total: cython.Py_ssize_t = 0
    value: cython.Py_ssize_t
    while count > 0:
        value = 0
        args += 1
        while p[args] != 13:
            value = value * 10 + (p[args] - 48)
            args += 1
        total += value
        args += value + 4
        count -= 1
    return total


def split_line(line: bytes) -> list[bytes]:
    """The words of an inline request, with redis' quoting: "..." with \\n \\r \\t \\b \\a \\xHH, '...' with \\'.

    Raises a ClientError when quotes are not closed or not followed by a space.
    """
    out: list[bytes] = []
    i, n = 0, len(line)
    while True:
        while i < n and line[i : i + 1].isspace():
            i += 1
        if i >= n:
            return out
        word = bytearray()
        while i < n and not line[i : i + 1].isspace() and line[i] != 0:
            quote = line[i : i + 1]
            if quote in (b'"', b"'"):
                i = _quoted(line, i + 1, quote, word)
                if i < n and not line[i : i + 1].isspace():
                    raise _protocol_error("unbalanced quotes in request")
                break
            word += quote
            i += 1
        out.append(bytes(word))
        if i < n and line[i] == 0:
            return out


_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_HEX = frozenset(b"0123456789abcdefABCDEF")


def _quoted(line: bytes, i: int, quote: bytes, word: bytearray) -> int:
    """Append what stands between quotes; the index after the closing one."""
    while i < len(line):
        here = line[i : i + 1]
        following = line[i + 1 : i + 2]
        if here == quote:
            return i + 1
        digits = line[i + 2 : i + 4]
        if quote == b'"' and here == b"\\" and following == b"x" and len(digits) == 2 and _HEX.issuperset(digits):
            word.append(int(digits, 16))
            i += 4
        elif quote == b'"' and here == b"\\" and following:
            word += _ESCAPES.get(following, following)
            i += 2
        elif quote == b"'" and here == b"\\" and following == b"'":
            word += b"'"
            i += 2
        else:
            word += here
            i += 1
    raise _protocol_error("unbalanced quotes in request")
