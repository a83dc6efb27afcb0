# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Bob Jenkins' one-at-a-time and lookup3 (burtleburtle.net/bob/hash), as twemproxy and libmemcached use them."""

import cython

from hyper_proxy.hashing.hash import Hash, SignedHash


@cython.cclass
class OneAtATime(SignedHash):
    """one_at_a_time; the sign of bytes as in hash.py."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits."""
        p: cython.p_uchar = buf
        sign: cython.int = self.sign
        h: cython.uint = 0
        i: cython.Py_ssize_t
        for i in range(start, end):
            h += (p[i] ^ sign) - sign
            h += h << 10
            if not cython.compiled:
                h &= 0xFFFFFFFF
            h ^= h >> 6
        h += h << 3
        if not cython.compiled:
            h &= 0xFFFFFFFF
        h ^= h >> 11
        h += h << 15
        if not cython.compiled:
            h &= 0xFFFFFFFF
        return h


@cython.cfunc
@cython.inline
def rotate(x: cython.uint, k: cython.int) -> cython.uint:
    """The low 32 bits of x, turned left by k bits."""
    if not cython.compiled:
        x &= 0xFFFFFFFF
    x = (x << k) | (x >> (32 - k))
    if not cython.compiled:
        x &= 0xFFFFFFFF
    return x


@cython.cfunc
@cython.inline
def word(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.uint:
    """The little-endian word at i, with zeros in place of what lies at or behind `end`."""
    w: cython.uint = 0
    k: cython.Py_ssize_t
    if i + 4 <= end:
        return p[i] | p[i + 1] << 8 | p[i + 2] << 16 | cython.cast(cython.uint, p[i + 3]) << 24
    for k in range(i, end):
        w |= cython.cast(cython.uint, p[k]) << (8 * (k - i))
    return w


@cython.cclass
class Jenkins(Hash):
    """lookup3's hashlittle with initval 13; a last block of less than 12 bytes is filled with zeros."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits; 0 for an empty key, as in twemproxy."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        a: cython.uint = 0xDEADBEEF
        b: cython.uint
        c: cython.uint
        if start >= end:
            return 0
        a += cython.cast(cython.uint, end - start) + 13
        if not cython.compiled:
            a &= 0xFFFFFFFF
        b = a
        c = a
        while True:
            a += word(p, i, end)
            b += word(p, i + 4, end)
            c += word(p, i + 8, end)
            if end - i <= 12:
                break
            a = (a - c) ^ rotate(c, 4)
            c += b
            b = (b - a) ^ rotate(a, 6)
            a += c
            c = (c - b) ^ rotate(b, 8)
            b += a
            a = (a - c) ^ rotate(c, 16)
            c += b
            b = (b - a) ^ rotate(a, 19)
            a += c
            c = (c - b) ^ rotate(b, 4)
            b += a
            i += 12
        c = (c ^ b) - rotate(b, 14)
        a = (a ^ c) - rotate(c, 11)
        b = (b ^ a) - rotate(a, 25)
        c = (c ^ b) - rotate(b, 16)
        a = (a ^ c) - rotate(c, 4)
        b = (b ^ a) - rotate(a, 14)
        c = (c ^ b) - rotate(b, 24)
        if not cython.compiled:
            c &= 0xFFFFFFFF
        return c
