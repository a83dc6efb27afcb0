# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Where a memcache request ends; what its line says, and whether memcached 1.6.18 would take it, is in line.py.

Every error after which memcached does or does not read the value that follows is found here, so that what is sent on to
a server has exactly one answer: framing towards the server is never a matter of luck.
"""

from __future__ import annotations

import cython

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.commands import COMMANDS, UNKNOWN
from hyper_proxy.protocol.memcache.line import FIELDS
from hyper_proxy.storage.memcache import MAX_KEY_BYTES

if not cython.compiled:
    from hyper_proxy.protocol.memcache.command import Command
    from hyper_proxy.protocol.memcache.line import (
        LOCAL,
        META_DEBUG,
        META_STORE,
        RETRIEVE_TOUCHING,
        STORE,
        STORE_CAS,
        Line,
    )

STRANGERS = {
    0x80: "the binary protocol is not served: let the client speak the text protocol",
    0x16: "TLS is not served: let the client connect without",
}
"""By their first byte, those who would wait for ever for an answer to what is no line."""
LONG_LINE = 2000  # memcached may close a connection on which 2048 bytes came without the end of a line


def _refuse_strangers(first: int) -> None:
    if first in STRANGERS:
        raise ClientError(STRANGERS[first])


@cython.cclass
class Framer(Line):
    """Finds requests in a buffer; after `scan` its attributes describe the request that was found.

    command             its row, UNKNOWN when there is none of that name
    error               what to answer instead of sending it on; None when it may be sent
    noreply             no answer is wanted, not even an error
    args                the index after the command's name
    key_start, key_end  its (first) key
    several             a retrieval of more than one key
    cut                 where the line that is sent on ends: before noreply and what memcached does not look at
    text_end            where the line ends
    line_end            the index after the line's LF; the value, if there is one, starts here
    swallow             so many bytes after the request belong to a refused value and must be skipped
    stale               the error means that memcached has removed the old value of the key
    quiet               how many flags q a meta request has
    encoded             the key of a meta request is base64
    long                the line is longer than memcached reads, except for get and gets
    need                after -1: how many bytes from the request's start must be there before another scan
    """

    def __init__(self, max_key: int, max_value: int, max_line: int) -> None:
        super().__init__(min(max_key, MAX_KEY_BYTES))
        self.max_value = max_value
        self.max_line = max_line
        self.position = 0  # how much of an unfinished line has been searched for its end
        self.need = self.line_end = self.swallow = 0
        self.stale = False
        self.whole = True  # nothing stands between the text and the line's end
        self.long = False
        self.last_name = b""
        self.last_command = UNKNOWN

    @cython.ccall
    @cython.exceptval(-2, check=False)
    def scan(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The index after the request that begins at `start`; -1 when it is not whole. Raises a ClientError."""
        p: cython.p_uchar = buf
        n: cython.Py_ssize_t = len(buf)
        end: cython.Py_ssize_t = _find(buf, 10, start + self.position, n)
        form: cython.int
        size: cython.Py_ssize_t = -1
        if end < 0 or end - start > self.max_line:
            if n - start > self.max_line:
                raise ClientError("line too long")
            _refuse_strangers(p[start])
            self.position = n - start
            self.need = n - start + 1
            return -1
        self.position = 0
        self.line_end = end + 1
        self.long = end - start > LONG_LINE
        # As memcached: a lone CR is a (bad) command, and nothing is seen behind a NUL.
        if end - start > 1 and p[end - 1] == 13:
            end -= 1
        nul: cython.Py_ssize_t = _find(buf, 0, start, end)
        self.whole = nul < 0
        self.text_end = self.cut = end if nul < 0 else nul
        self.error = None
        self.noreply = self.several = self.stale = self.odd = self.encoded = False
        self.swallow = 0
        self.quiet = 0
        self.next_word(buf, start)
        self.args = self.word_end
        self.command = self.lookup(buf)
        if self.command is UNKNOWN:
            _refuse_strangers(p[start])
            self.error = wording.ERROR
            return self.line_end
        form = self.command.form
        if form <= RETRIEVE_TOUCHING:
            self.read_retrieval(buf, form == RETRIEVE_TOUCHING)
            return self.line_end
        self.count(buf)
        if self.words < self.command.least or (self.command.most and self.words > self.command.most):
            self.noreply = False
            self.error = wording.BAD_FORMAT if form == META_DEBUG else wording.ERROR
            return self.line_end
        if STORE <= form <= STORE_CAS:
            size = self.read_store(buf)
        elif form == META_STORE:
            size = self.read_meta_store(buf)
        else:
            self.read_line(buf, form)
        end = self.line_end if size < 0 else self.read_block(buf, start, size)
        if self.long and form < LOCAL and self.error is None and len(self.rewrite(buf)) > LONG_LINE:
            self.error = wording.LINE_TOO_LONG
        return end

    @cython.ccall
    def request(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> bytes:
        """The request buf[start:end] to send on: as it came, but for noreply, q, odd numbers and heaps of spaces."""
        if self.odd or self.long:
            return b"%b\r\n%b" % (self.rewrite(buf), buf[self.line_end : end])
        if self.quiet:
            words: bytes = buf[start : self.quiet_start] + buf[self.quiet_end : self.cut]
            return b"%b\r\n%b" % (words, buf[self.line_end : end])
        if self.whole and self.cut == self.text_end:
            return buf if end - start == len(buf) else buf[start:end]
        return b"%b\r\n%b" % (buf[start : self.cut], buf[self.line_end : end])

    def rewrite(self, buf: bytes) -> bytes:
        """The line with single spaces and with its numbers in plain digits."""
        words = split_words(buf, self.args, self.cut)
        readers = FIELDS.get(self.command.form, ())
        # Not fewer words than numbers: the line was read before.
        numbers = [str(read(word)).encode() for read, word in zip(readers, words[1:], strict=False)]
        flags = [word for word in words[1 + len(numbers) :] if not (self.quiet and word.startswith(b"q"))]
        return b" ".join([self.command.name, *words[:1], *numbers, *flags])

    @cython.cfunc
    def lookup(self, buf: bytes) -> Command:
        """The command named by the word; the last one is remembered, for pipelines repeat themselves."""
        p: cython.p_uchar = buf
        last: cython.p_uchar = self.last_name
        start: cython.Py_ssize_t = self.word_start
        size: cython.Py_ssize_t = self.word_end - start
        i: cython.Py_ssize_t = 0
        if size == len(self.last_name):
            while i < size and p[start + i] == last[i]:
                i += 1
            if i == size:
                return self.last_command
        name: bytes = buf[start : start + size]
        self.last_command = COMMANDS.get(name, UNKNOWN)
        self.last_name = name
        return self.last_command

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def read_block(self, buf: bytes, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The index after the value of `size` bytes; -1 when it is not whole."""
        p: cython.p_uchar = buf
        end: cython.Py_ssize_t = self.line_end + size + 2
        if size > self.max_value:
            self.error = wording.TOO_LARGE
            self.swallow = size + 2
            self.stale = self.command.form == META_STORE or self.command.name == b"set"
            return self.line_end
        if end > len(buf):
            self.need = end - start
            return -1
        if (p[end - 2] != 13 or p[end - 1] != 10) and self.command.form != META_STORE:
            self.error = wording.BAD_CHUNK  # ms goes on, since its flags may be at fault as well
        return end


@cython.cfunc
@cython.inline
def _find(buf: bytes, byte: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The index of the first such byte in buf[start:end], or -1."""
    if cython.compiled:
        p: cython.p_uchar = buf
        at: cython.p_void = memchr(p + start, byte, end - start)  # type: ignore[name-defined]  # noqa: F821
        return -1 if at == cython.NULL else cython.cast(cython.p_uchar, at) - p
    else:
        return buf.find(byte, start, end)


def split_words(buf: bytes, start: int, end: int) -> list[bytes]:
    """The words of buf[start:end]; memcached knows no separator but the space."""
    return [word for word in buf[start:end].split(b" ") if word]
