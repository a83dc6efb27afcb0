# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""mcrouter's ch3, also called furc: a consistent hash without a table (facebook/mcrouter mcrouter/lib/fbi/hash.c).

A tree of powers of two is walked by bits drawn from an endless stream: word 0 is the hash of the key, each next word is
the hash of the word before. Servers are numbers: grow and shrink the list at its end only.
"""

from array import array

import cython

from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.placement import Placement

SEED = 4193360111
M64 = cython.declare(cython.ulonglong, 0xC6A4A7935BD1E995)
# What MurmurHash64A starts from for a message of 8 bytes: the seed, xor 8 * M64.
START = cython.declare(cython.ulonglong, (SEED ^ (8 * 0xC6A4A7935BD1E995)) & 0xFFFFFFFFFFFFFFFF)
SHIFT = 23  # bits from one digit of the drawn number to the next; so at most 2**23 shards
TRIES = 32
# The last bit that 32 tries of 23 digits can ask for, in words of 64 bits.
WORDS_MOST = (SHIFT + SHIFT * SHIFT * TRIES) // 64 + 1


@cython.cfunc
@cython.inline
def next_word(k: cython.ulonglong) -> cython.ulonglong:
    """MurmurHash64A of the 8 little-endian bytes of a word."""
    h: cython.ulonglong
    k *= M64
    if not cython.compiled:
        k &= 0xFFFFFFFFFFFFFFFF
    k = (k ^ (k >> 47)) * M64
    h = (START ^ k) * M64
    if not cython.compiled:
        h &= 0xFFFFFFFFFFFFFFFF
    h = (h ^ (h >> 47)) * M64
    if not cython.compiled:
        h &= 0xFFFFFFFFFFFFFFFF
    return h ^ (h >> 47)


@cython.cclass
class Furc(Placement):
    """ch3 over `shards` servers; the hash is MurmurHash64A with mcrouter's seed."""

    words: cython.ulonglong[::1]
    known: cython.Py_ssize_t
    depth: cython.int

    def __init__(self, shards: int, hash: Hash, hash_tag: bytes) -> None:
        super().__init__(shards, hash, hash_tag)
        self.words = array("Q", [0] * (WORDS_MOST + 1))
        self.depth = (shards - 1).bit_length()

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """Draw numbers until one is below the number of shards, going down a level whenever the first bit says so."""
        digits: cython.int = self.depth
        place: cython.Py_ssize_t = digits
        number: cython.Py_ssize_t
        _turn: cython.int
        _digit: cython.int
        self.words[0] = value
        self.known = 1
        for _turn in range(TRIES):
            while not self.bit(place):
                digits -= 1
                if digits == 0:
                    return 0
                place = digits
            place += SHIFT
            number = 1
            for _digit in range(digits - 1):
                number = 2 * number + self.bit(place)
                place += SHIFT
            if number < self.shards:
                return number
        return 0

    @cython.cfunc
    def bit(self, i: cython.Py_ssize_t) -> cython.int:
        """Bit i of the stream."""
        w: cython.Py_ssize_t = i >> 6
        while self.known <= w:
            self.words[self.known] = next_word(self.words[self.known - 1])
            self.known += 1
        return cython.cast(cython.int, (self.words[w] >> (i & 63)) & 1)
