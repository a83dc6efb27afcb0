# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Paul Hsieh's SuperFastHash (www.azillionmonkeys.com/qed/hash.html) in twemproxy's form.

That form starts from 0, not from the length, and the last byte of a tail of three has the sign of a C `char`, as in
hash.py; all other bytes have none.
"""

import cython

from hyper_proxy.hashing.hash import SignedHash


@cython.cclass
class Hsieh(SignedHash):
    """SuperFastHash from 0."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits; 0 for an empty key."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        h: cython.uint = 0
        rest: cython.Py_ssize_t
        last: cython.uint
        shift: cython.int = 0
        while i + 4 <= end:
            h += p[i] | p[i + 1] << 8
            if not cython.compiled:
                h &= 0xFFFFFFFF
            h = (h << 16) ^ h ^ (cython.cast(cython.uint, p[i + 2] | p[i + 3] << 8) << 11)
            if not cython.compiled:
                h &= 0xFFFFFFFF
            h += h >> 11
            i += 4
        rest = end - i
        if not cython.compiled:
            h &= 0xFFFFFFFF
        if rest == 3:
            h += p[i] | p[i + 1] << 8
            h ^= h << 16
            last = (p[i + 2] ^ self.sign) - self.sign
            h ^= last << 18
            shift = 11
        elif rest == 2:
            h += p[i] | p[i + 1] << 8
            h ^= h << 11
            shift = 17
        elif rest == 1:
            h += p[i]
            h ^= h << 10
            shift = 1
        if not cython.compiled:
            h &= 0xFFFFFFFF
        if rest:
            h += h >> shift
        return avalanche(h)


@cython.cfunc
@cython.inline
def avalanche(h: cython.uint) -> cython.uint:
    """The last six steps, which spread the last bits over the whole word."""
    if not cython.compiled:
        h &= 0xFFFFFFFF
    h ^= h << 3
    if not cython.compiled:
        h &= 0xFFFFFFFF
    h += h >> 5
    h ^= h << 4
    if not cython.compiled:
        h &= 0xFFFFFFFF
    h += h >> 17
    h ^= h << 25
    if not cython.compiled:
        h &= 0xFFFFFFFF
    h += h >> 6
    if not cython.compiled:
        h &= 0xFFFFFFFF
    return h
