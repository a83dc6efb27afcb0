# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Where a memcache request ends, what its line says, and whether memcached 1.6.18 would take it.

Every error after which memcached does or does not read the value that follows is found here, so that what is sent on to
a server has exactly one answer: framing towards the server is never a matter of luck.
"""

from __future__ import annotations

from collections.abc import Callable

import cython

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.commands import COMMANDS, UNKNOWN
from hyper_proxy.protocol.memcache.numbers import read_signed32, read_unsigned32, read_unsigned64
from hyper_proxy.storage.memcache import MAX_KEY_BYTES

if not cython.compiled:
    from hyper_proxy.protocol.memcache.command import Command

RETRIEVE_TOUCHING = 1  # hyper_proxy.protocol.memcache.command has all forms; up to this one they are retrievals
STORE = 2
STORE_CAS = 3
NUMBER = 4
EXPTIME = 5
DELETE = 6
META = 7
META_STORE = 8
META_DEBUG = 9
LOCAL = 10

MAX_SIZE = 2**31 - 3  # of a value that a line can announce
MOST_META_WORDS = 19  # of mg, ms, md, ma
PLAIN_DIGITS = 9  # so many digits fit into every field
MAX_DIGITS = 64  # characters of a number, leading zeros included; memcached has no such limit
LONG_LINE = 2000  # memcached may close a connection on which 2048 bytes came without the end of a line

Reader = Callable[[bytes], "int | None"]

FIELDS: dict[int, tuple[Reader, ...]] = {
    STORE: (read_unsigned32, read_signed32, read_signed32),
    STORE_CAS: (read_unsigned32, read_signed32, read_signed32, read_unsigned64),
    NUMBER: (read_unsigned64,),
    EXPTIME: (read_signed32,),
    META_STORE: (read_signed32,),
}
"""How the numbers behind the key are read."""


@cython.cclass
class Framer:
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
        self.max_key = min(max_key, MAX_KEY_BYTES)
        self.max_value = max_value
        self.max_line = max_line
        self.position = 0  # how much of an unfinished line has been searched for its end
        self.need = self.args = self.key_start = self.key_end = self.cut = self.text_end = self.line_end = 0
        self.words = self.word_start = self.word_end = self.swallow = self.quiet_start = self.quiet_end = 0
        self.command = UNKNOWN
        self.error: bytes | None = None
        self.noreply = self.several = self.stale = self.encoded = False
        self.whole = True  # nothing stands between the text and the line's end
        self.long = False
        self.odd = False  # a number is written in a way that other versions of memcached may refuse
        self.quiet = 0
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

    # --- words

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
    @cython.exceptval(check=False)
    def next_word(self, buf: bytes, i: cython.Py_ssize_t) -> cython.bint:
        """Find the next word from i on; memcached knows no separator but the space."""
        p: cython.p_uchar = buf
        end: cython.Py_ssize_t = self.text_end
        while i < end and p[i] == 32:
            i += 1
        self.word_start = i
        while i < end and p[i] != 32:
            i += 1
        self.word_end = i
        return i > self.word_start

    @cython.cfunc
    @cython.exceptval(check=False)
    def take_key(self, buf: bytes) -> cython.bint:
        """The first word behind the name is the key. False when it is too long."""
        self.next_word(buf, self.args)
        self.key_start = self.word_start
        self.key_end = self.word_end
        return self.key_end - self.key_start <= self.max_key

    @cython.cfunc
    @cython.exceptval(check=False)
    def count(self, buf: bytes) -> cython.void:
        """Count the words, and see whether the last one is noreply."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = self.args
        words: cython.Py_ssize_t = 1
        start: cython.Py_ssize_t = i
        while self.next_word(buf, i):
            words += 1
            start = self.word_start
            i = self.word_end
        self.words = words
        if i - start == 7:
            self.noreply = (
                p[start] == 110 and p[start + 1] == 111 and p[start + 2] == 114 and p[start + 3] == 101
                and p[start + 4] == 112 and p[start + 5] == 108 and p[start + 6] == 121
            )  # fmt: skip

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def number(self, buf: bytes, read: Reader) -> cython.Py_ssize_t:
        """The next word as a number; sets `error` when it is none. 0 for one of more than 32 bits."""
        p: cython.p_uchar = buf
        self.next_word(buf, self.word_end)
        i: cython.Py_ssize_t = self.word_start
        value: cython.Py_ssize_t = 0
        if self.word_end - i <= PLAIN_DIGITS:
            while i < self.word_end and 48 <= p[i] <= 57:
                value = value * 10 + (p[i] - 48)
                i += 1
            if i == self.word_end:
                return value
        word: bytes = buf[self.word_start : self.word_end]
        exact = read(word) if len(word) <= MAX_DIGITS else None
        if exact is None:
            self.error = wording.BAD_FORMAT
            return 0
        if b"%d" % exact != word:
            self.odd = True
        return exact if abs(exact) <= MAX_SIZE + 3 else 0

    # --- forms

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read_line(self, buf: bytes, form: cython.int) -> cython.bint:
        """The forms without a value."""
        if form == NUMBER:
            self.read_number(buf, read_unsigned64, wording.BAD_DELTA)
        elif form == EXPTIME:
            self.read_number(buf, read_signed32, wording.BAD_EXPTIME)
        elif form == DELETE:
            self.read_delete(buf)
        elif form < LOCAL:
            self.read_meta(buf)
        return True

    @cython.cfunc
    def read_retrieval(self, buf: bytes, touching: cython.bint) -> cython.void:
        """get key*, gat exptime key*."""
        if not self.next_word(buf, self.args):
            self.error = wording.ERROR
            return
        if touching:
            self.word_end = self.args
            self.number(buf, read_signed32)
            self.odd = False  # the server reads the number as it is: framing does not hang on it
            if self.error is not None:
                self.error = wording.BAD_EXPTIME
                return
            if not self.next_word(buf, self.word_end):
                self.error = wording.END
                return
        self.key_start = self.word_start
        self.key_end = self.word_end
        if self.next_word(buf, self.word_end):
            self.several = True
        elif self.key_end - self.key_start > self.max_key:
            self.error = wording.BAD_FORMAT

    @cython.cfunc
    def read_number(self, buf: bytes, read: Reader, refusal: bytes) -> cython.void:
        """incr, decr, touch: a key and a number; memcached does not look at a further word that is not noreply."""
        if not self.take_key(buf):
            self.error = wording.BAD_FORMAT
            return
        self.number(buf, read)
        if self.error is not None:
            self.error = refusal
        self.cut = self.word_end

    @cython.cfunc
    def read_delete(self, buf: bytes) -> cython.void:
        """delete key, delete key 0, delete key noreply, delete key 0 noreply."""
        p: cython.p_uchar = buf
        fits: cython.bint = self.take_key(buf)
        zero: cython.bint
        self.cut = self.key_end
        if self.words == 2:
            self.noreply = False  # that was the key
        else:
            self.next_word(buf, self.key_end)
            zero = self.word_end - self.word_start == 1 and p[self.word_start] == 48
            if not ((self.words == 3 and (zero or self.noreply)) or (self.words == 4 and zero and self.noreply)):
                self.error = wording.BAD_DELETE
                return
        if not fits:
            self.error = wording.BAD_FORMAT

    @cython.cfunc
    def read_meta(self, buf: bytes) -> cython.void:
        """mg, md, ma, me: a key and flags."""
        p: cython.p_uchar = buf
        self.noreply = False
        if not self.take_key(buf):
            self.error = wording.BAD_FORMAT
        elif self.command.form == META_DEBUG:
            if self.next_word(buf, self.word_end):
                self.encoded = self.word_end - self.word_start == 1 and p[self.word_start] == 98
        elif self.words > MOST_META_WORDS:
            self.error = wording.MANY_FLAGS_READING if self.command.name == b"mg" else wording.MANY_FLAGS
        else:
            self.read_flags(buf)

    @cython.cfunc
    @cython.exceptval(check=False)
    def read_flags(self, buf: bytes) -> cython.void:
        """Of the flags only q and b matter here; the server judges the others."""
        p: cython.p_uchar = buf
        while self.next_word(buf, self.word_end):
            if p[self.word_start] == 113:
                self.quiet += 1
                self.quiet_start = self.word_start
                self.quiet_end = self.word_end
            elif p[self.word_start] == 98:
                self.encoded = True

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def read_store(self, buf: bytes) -> cython.Py_ssize_t:
        """set, add, replace, append, prepend, cas: the size of the value, -1 when memcached would not read it."""
        size: cython.Py_ssize_t = -1
        if self.take_key(buf):
            self.number(buf, read_unsigned32)
            if self.error is None:
                self.number(buf, read_signed32)
            if self.error is None:
                size = self.number(buf, read_signed32)
            if self.error is None and self.command.form == STORE_CAS:
                self.number(buf, read_unsigned64)
        if self.error is not None or not 0 <= size <= MAX_SIZE:
            self.error = wording.BAD_FORMAT
            return -1
        self.cut = self.word_end
        return size

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def read_meta_store(self, buf: bytes) -> cython.Py_ssize_t:
        """ms: the size of the value, -1 when memcached would not read it."""
        size: cython.Py_ssize_t = -1
        self.noreply = False
        if self.take_key(buf) and self.words > 2:
            if self.words > MOST_META_WORDS:
                self.error = wording.MANY_FLAGS
                return -1
            size = self.number(buf, read_signed32)
        if self.error is not None or not 0 <= size <= MAX_SIZE:
            self.error = wording.BAD_FORMAT
            return -1
        self.read_flags(buf)
        return size

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
