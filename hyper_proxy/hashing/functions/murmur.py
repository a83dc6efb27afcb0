# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Austin Appleby's Murmur hashes (github.com/aappleby/smhasher): MurmurHash2 and MurmurHash3 of 32 bits, MurmurHash64A.

The seeds are those of the programs that use them: 0xdeadbeef times the length in twemproxy and libmemcached,
4193360111 in mcrouter, 0xc70f6907 in Envoy.
"""

import cython

from hyper_proxy.hashing.hash import Hash

# Named: a literal above 2**31 would make the compiled code use Python numbers.
SEED = cython.declare(cython.uint, 0xDEADBEEF)
C1 = cython.declare(cython.uint, 0xCC9E2D51)
C2 = cython.declare(cython.uint, 0x1B873593)
ADDEND = cython.declare(cython.uint, 0xE6546B64)
FINAL1 = cython.declare(cython.uint, 0x85EBCA6B)
FINAL2 = cython.declare(cython.uint, 0xC2B2AE35)
M64 = cython.declare(cython.ulonglong, 0xC6A4A7935BD1E995)


@cython.cclass
class Murmur2(Hash):
    """MurmurHash2, 32 bits, seed 0xdeadbeef * length."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits; 0 for an empty key."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        h: cython.uint = cython.cast(cython.uint, end - start)
        k: cython.uint
        h ^= h * SEED
        if not cython.compiled:
            h &= 0xFFFFFFFF
        while i + 4 <= end:
            k = p[i] | p[i + 1] << 8 | p[i + 2] << 16 | cython.cast(cython.uint, p[i + 3]) << 24
            k *= 0x5BD1E995
            if not cython.compiled:
                k &= 0xFFFFFFFF
            k ^= k >> 24
            k *= 0x5BD1E995
            h *= 0x5BD1E995
            h ^= k
            if not cython.compiled:
                h &= 0xFFFFFFFF
            i += 4
        if i < end:
            if end - i == 3:
                h ^= p[i + 2] << 16
            if end - i >= 2:
                h ^= p[i + 1] << 8
            h ^= p[i]
            h *= 0x5BD1E995
            if not cython.compiled:
                h &= 0xFFFFFFFF
        h ^= h >> 13
        h *= 0x5BD1E995
        if not cython.compiled:
            h &= 0xFFFFFFFF
        h ^= h >> 15
        return h


@cython.cclass
class Murmur3(Hash):
    """MurmurHash3 x86, 32 bits, seed 0xdeadbeef * length (libmemcached)."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits; 0 for an empty key."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        length: cython.uint = cython.cast(cython.uint, end - start)
        h: cython.uint = length * SEED
        k: cython.uint
        if not cython.compiled:
            h &= 0xFFFFFFFF
        while i + 4 <= end:
            k = p[i] | p[i + 1] << 8 | p[i + 2] << 16 | cython.cast(cython.uint, p[i + 3]) << 24
            h ^= scramble(k)
            h = (h << 13) | (h >> 19)
            if not cython.compiled:
                h &= 0xFFFFFFFF
            h = h * 5 + ADDEND
            if not cython.compiled:
                h &= 0xFFFFFFFF
            i += 4
        k = 0
        if end - i == 3:
            k ^= p[i + 2] << 16
        if end - i >= 2:
            k ^= p[i + 1] << 8
        if i < end:
            h ^= scramble(k ^ p[i])
        h ^= length
        h = (h ^ (h >> 16)) * FINAL1
        if not cython.compiled:
            h &= 0xFFFFFFFF
        h = (h ^ (h >> 13)) * FINAL2
        if not cython.compiled:
            h &= 0xFFFFFFFF
        return h ^ (h >> 16)


@cython.cfunc
@cython.inline
def scramble(k: cython.uint) -> cython.uint:
    """A block of MurmurHash3 before it is mixed in."""
    k *= C1
    if not cython.compiled:
        k &= 0xFFFFFFFF
    k = (k << 15) | (k >> 17)
    if not cython.compiled:
        k &= 0xFFFFFFFF
    k *= C2
    if not cython.compiled:
        k &= 0xFFFFFFFF
    return k


@cython.cclass
class Murmur64A(Hash):
    """MurmurHash64A with a fixed seed."""

    seed: cython.ulonglong

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """64 bits."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        j: cython.Py_ssize_t
        h: cython.ulonglong = self.seed ^ (cython.cast(cython.ulonglong, end - start) * M64)
        k: cython.ulonglong
        if not cython.compiled:
            h &= 0xFFFFFFFFFFFFFFFF
        while i + 8 <= end:
            k = 0
            for j in range(8):
                k |= cython.cast(cython.ulonglong, p[i + j]) << (8 * j)
            k *= M64
            if not cython.compiled:
                k &= 0xFFFFFFFFFFFFFFFF
            k ^= k >> 47
            k *= M64
            h = (h ^ k) * M64
            if not cython.compiled:
                h &= 0xFFFFFFFFFFFFFFFF
            i += 8
        if i < end:
            for j in range(end - i):
                h ^= cython.cast(cython.ulonglong, p[i + j]) << (8 * j)
            h *= M64
            if not cython.compiled:
                h &= 0xFFFFFFFFFFFFFFFF
        h = (h ^ (h >> 47)) * M64
        if not cython.compiled:
            h &= 0xFFFFFFFFFFFFFFFF
        return h ^ (h >> 47)
