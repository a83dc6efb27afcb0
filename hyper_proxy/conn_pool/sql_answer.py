# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The answer to one statement, in the text protocol of MySQL and MariaDB (COM_QUERY).

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html, without
CLIENT_DEPRECATE_EOF: OK or ERR, or the number of columns, their definitions, EOF, the rows, and EOF or ERR. A field is
the bytes that were sent, None for NULL. The driver would make objects of every definition and every packet, which
takes longer than the whole rest of a read.
"""

from __future__ import annotations

import cython

HEAD = 0
COLUMNS = 1
END_OF_COLUMNS = 2
ROWS = 3
DONE = 4

HEADER = 4  # bytes before each packet: its length in 3, and a number
LONGEST = 0xFFFFFF  # a packet of this length goes on in the next one
OK, NULL, EOF, ERR = 0x00, 0xFB, 0xFE, 0xFF
EOF_BYTES = 9  # what begins like EOF and is as long, or longer, is a row
MAX_COLUMNS = 4096  # of a table of MySQL


@cython.cclass
class Answer:
    """Feed it what comes until it says that this was all.

    rows         tuples of bytes or None
    affected     rows that were changed, by the OK packet; those that came, when some came
    definitions  the packets that define the columns
    failure      the ERR packet, b"" when there was none
    """

    def __init__(self) -> None:
        self.rows: list = []
        self.affected = 0
        self.definitions: list = []
        self.failure = b""
        self.state = HEAD
        self.columns = 0
        self.rest = b""
        self.parts: list = []  # of a packet that is longer than LONGEST

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def feed(self, data: bytes) -> cython.bint:
        """More bytes; True when the answer is whole. Raises ValueError for what is no answer."""
        buf: bytes = self.rest + data if self.rest else data
        p: cython.p_uchar = buf
        n: cython.Py_ssize_t = len(buf)
        at: cython.Py_ssize_t = 0
        while n - at >= HEADER:
            size: cython.Py_ssize_t = p[at] | (p[at + 1] << 8) | (p[at + 2] << 16)
            if n - at - HEADER < size:
                break
            if self.state == DONE:
                break
            start: cython.Py_ssize_t = at + HEADER
            at = start + size
            if size == LONGEST or self.parts:
                self.parts.append(buf[start:at])
                if size < LONGEST:
                    whole: bytes = b"".join(self.parts)
                    self.parts = []
                    self.take(whole, 0, len(whole))
            else:
                self.take(buf, start, at)
        self.rest = buf[at:] if at < n else b""
        if self.state == DONE and self.rest:
            raise ValueError("it answers more than it was asked")
        return self.state == DONE

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """One packet."""
        p: cython.p_uchar = buf
        if start == end:
            raise ValueError("an empty packet")
        kind: cython.int = p[start]
        if self.state == COLUMNS:
            self.definitions.append(buf[start:end])
            if len(self.definitions) == self.columns:
                self.state = END_OF_COLUMNS
        elif kind == ERR:
            self.failure = buf[start:end]
            self.state = DONE
        elif self.state == HEAD:
            self.begin(buf, start, end)
        elif kind == EOF and end - start < EOF_BYTES:
            self.affected = len(self.rows)
            self.state = ROWS if self.state == END_OF_COLUMNS else DONE
        elif self.state == ROWS:
            self.row(buf, start, end)
        else:
            raise ValueError("the definitions of its columns have no end")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def begin(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        p: cython.p_uchar = buf
        kind: cython.int = p[start]
        if kind == NULL:
            raise ValueError("it asks for a file of this machine")
        if kind == OK:
            self.at = start + 1
            self.affected = self.number(buf, end)
            self.state = DONE
            return 0
        self.at = start
        self.columns = self.number(buf, end)
        if not 0 < self.columns <= MAX_COLUMNS or self.at != end:
            raise ValueError("a number of columns that no table has")
        self.state = COLUMNS
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def row(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        p: cython.p_uchar = buf
        fields: list = []
        size: cython.Py_ssize_t
        self.at = start
        for _ in range(self.columns):
            if self.at < end and p[self.at] == NULL:
                self.at += 1
                fields.append(None)
                continue
            size = self.number(buf, end)
            if size > end - self.at:
                raise ValueError("a field is longer than its row")
            fields.append(buf[self.at : self.at + size])
            self.at += size
        if self.at != end:
            raise ValueError("a row is longer than its columns")
        self.rows.append(tuple(fields))
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def number(self, buf: bytes, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The length-encoded integer at self.at, which moves on."""
        p: cython.p_uchar = buf
        if self.at >= end:
            raise ValueError("a packet ends in the middle of a number")
        first: cython.int = p[self.at]
        self.at += 1
        if first < NULL:
            return first
        size: cython.int = 2 if first == 0xFC else 3 if first == 0xFD else 8 if first == EOF else 0
        if size == 0 or end - self.at < size:
            raise ValueError("a packet ends in the middle of a number")
        value: cython.Py_ssize_t = 0
        i: cython.int
        for i in range(size):
            if i == 7 and p[self.at + i] >= 0x80:
                raise ValueError("a number that no length can be")
            value |= cython.cast(cython.Py_ssize_t, p[self.at + i]) << (8 * i)
        self.at += size
        return value


def packets(command: int, body: bytes) -> bytes:
    """A command with its body, as it is sent: cut where it is too long for one packet."""
    whole = bytes((command,)) + body
    cuts = range(0, len(whole) + 1, LONGEST)
    parts = [whole[cut : cut + LONGEST] for cut in cuts]
    return b"".join([len(part).to_bytes(3, "little") + bytes((number & 0xFF,)) + part
                     for number, part in enumerate(parts)])  # fmt: skip
