# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What the line of a memcache request says, form by form, and whether memcached 1.6.18 would take it."""

from __future__ import annotations

from collections.abc import Callable

import cython

from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.commands import UNKNOWN
from hyper_proxy.protocol.memcache.numbers import read_signed32, read_unsigned32, read_unsigned64

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
class Line:
    """Base of the framer, which says what its attributes mean and where the line is."""

    def __init__(self, max_key: int) -> None:
        self.max_key = max_key
        self.args = self.key_start = self.key_end = self.cut = self.text_end = 0
        self.words = self.word_start = self.word_end = self.quiet_start = self.quiet_end = 0
        self.command = UNKNOWN
        self.error: bytes | None = None
        self.noreply = self.several = self.encoded = False
        self.odd = False  # a number is written in a way that other versions of memcached may refuse
        self.quiet = 0

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
