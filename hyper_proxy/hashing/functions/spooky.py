# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Bob Jenkins' SpookyHash V2 (burtleburtle.net/bob/hash/spooky.html), low 32 bits: mcrouter draws its weights from it.

Keys below 192 bytes take the short form with four words of state, longer ones the long form with twelve.
"""

from array import array

import cython

from hyper_proxy.hashing.hash import Hash

if not cython.compiled:
    from hyper_proxy.common.xxh64 import rotate, word

CONSTANT = cython.declare(cython.ulonglong, 0xDEADBEEFDEADBEEF)
WORDS = 12
BLOCK_BYTES = 96
SHORT_BYTES = 192
# How far each word is turned: in a step of the long form, and in its end.
TURNS = (11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46)
END_TURNS = (44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54)
# The short form walks in a circle through its four words; these are the turns of three rounds and of the end.
SHORT_TURNS = (50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36)
SHORT_END_TURNS = (15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def padded(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
    """The word of 8 bytes at i, with zeros in place of what lies at or behind `end`."""
    return word(p, i, min(8, end - i))


@cython.cclass
class Spooky(Hash):
    """SpookyHash V2 with a fixed seed for both halves."""

    seed: cython.ulonglong
    state: cython.ulonglong[::1]
    turns: cython.int[::1]
    end_turns: cython.int[::1]
    short_turns: cython.int[::1]
    short_end_turns: cython.int[::1]

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.state = array("Q", [0] * WORDS)
        self.turns = array("i", TURNS)
        self.end_turns = array("i", END_TURNS)
        self.short_turns = array("i", SHORT_TURNS)
        self.short_end_turns = array("i", SHORT_END_TURNS)

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits."""
        p: cython.p_uchar = buf
        low: cython.uint
        if end - start < SHORT_BYTES:
            low = cython.cast(cython.uint, self.short(p, start, end))
        else:
            low = cython.cast(cython.uint, self.long(p, start, end))
        if not cython.compiled:
            low &= 0xFFFFFFFF
        return low

    @cython.cfunc
    @cython.exceptval(check=False)
    def short(self, p: cython.p_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """The first half of the hash of less than 192 bytes."""
        s: cython.ulonglong[::1] = self.state
        i: cython.Py_ssize_t = start
        s[0] = s[1] = self.seed
        s[2] = s[3] = CONSTANT
        while i + 32 <= end:
            self.add(2, padded(p, i, end))
            self.add(3, padded(p, i + 8, end))
            self.short_mix()
            self.add(0, padded(p, i + 16, end))
            self.add(1, padded(p, i + 24, end))
            i += 32
        if i + 16 <= end:
            self.add(2, padded(p, i, end))
            self.add(3, padded(p, i + 8, end))
            self.short_mix()
            i += 16
        self.add(3, cython.cast(cython.ulonglong, end - start) << 56)
        if i < end:
            self.add(2, padded(p, i, end))
            self.add(3, padded(p, i + 8, end))
        else:
            self.add(2, CONSTANT)
            self.add(3, CONSTANT)
        self.short_end()
        return s[0]

    @cython.cfunc
    @cython.exceptval(check=False)
    def add(self, i: cython.Py_ssize_t, w: cython.ulonglong) -> cython.void:
        """One word of the key into one word of the state."""
        w += self.state[i]
        if not cython.compiled:
            w &= 0xFFFFFFFFFFFFFFFF
        self.state[i] = w

    @cython.cfunc
    @cython.exceptval(check=False)
    def short_mix(self) -> cython.void:
        """Twelve steps of the short form; step k works on word k+2 of the circle."""
        k: cython.Py_ssize_t
        s: cython.ulonglong[::1] = self.state
        for k in range(12):
            s[(k + 2) & 3] = rotate(s[(k + 2) & 3], self.short_turns[k])
            self.add((k + 2) & 3, s[(k + 3) & 3])
            s[k & 3] ^= s[(k + 2) & 3]

    @cython.cfunc
    @cython.exceptval(check=False)
    def short_end(self) -> cython.void:
        """The eleven last steps of the short form."""
        k: cython.Py_ssize_t
        s: cython.ulonglong[::1] = self.state
        for k in range(11):
            s[(k + 3) & 3] ^= s[(k + 2) & 3]
            s[(k + 2) & 3] = rotate(s[(k + 2) & 3], self.short_end_turns[k])
            self.add((k + 3) & 3, s[(k + 2) & 3])

    @cython.cfunc
    @cython.exceptval(check=False)
    def long(self, p: cython.p_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """The first half of the hash of 192 bytes and more."""
        s: cython.ulonglong[::1] = self.state
        i: cython.Py_ssize_t = start
        k: cython.Py_ssize_t
        for k in range(WORDS):
            s[k] = CONSTANT if k % 3 == 2 else self.seed
        while i + BLOCK_BYTES <= end:
            for k in range(WORDS):
                self.add(k, padded(p, i + 8 * k, end))
                s[(k + 2) % 12] ^= s[(k + 10) % 12]
                s[(k + 11) % 12] ^= s[k]
                s[k] = rotate(s[k], self.turns[k])
                self.add((k + 11) % 12, s[(k + 1) % 12])
            i += BLOCK_BYTES
        for k in range(WORDS):
            self.add(k, padded(p, i + 8 * k, end))
        # The last byte of the last block is its length.
        self.add(11, cython.cast(cython.ulonglong, end - i) << 56)
        for k in range(3 * WORDS):
            self.add((k + 11) % 12, s[(k + 1) % 12])
            s[(k + 2) % 12] ^= s[(k + 11) % 12]
            s[(k + 1) % 12] = rotate(s[(k + 1) % 12], self.end_turns[k % 12])
        return s[0]
