# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""FNV-1 and FNV-1a as twemproxy and libmemcached compute them (Fowler, Noll, Vo; www.isthe.com/chongo/tech/comp/fnv).

Both programs read a key as C `char`, which has a sign on x86: bytes from 0x80 are extended with ones before they are
mixed in. `signed=False` is the result of the same program on ARM, and of Weibo's proxies everywhere. An empty key gives
0, as in twemproxy.
"""

import cython

from hyper_proxy.hashing.hash import SignedHash

# Named: a literal above 2**31 would make the compiled code use Python numbers.
PRIME_64 = cython.declare(cython.ulonglong, 0x100000001B3)
LOW_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
BASIS_64 = cython.declare(cython.ulonglong, 0xCBF29CE484222325)


@cython.cclass
class Fnv1Of32(SignedHash):
    """FNV-1, 32 bits: multiply, then mix in."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits."""
        p: cython.p_uchar = buf
        sign: cython.int = self.sign
        h: cython.uint = 2166136261
        i: cython.Py_ssize_t
        if start >= end:
            return 0
        for i in range(start, end):
            h *= 16777619
            h ^= (p[i] ^ sign) - sign
            if not cython.compiled:
                h &= 0xFFFFFFFF
        return h


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def mix(
    p: cython.p_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t, sign: cython.int, h: cython.uint,
    prime: cython.uint,
) -> cython.uint:
    """FNV-1a of 32 bits from `h` on: mix in, then multiply."""
    i: cython.Py_ssize_t
    if start >= end:
        return 0
    for i in range(start, end):
        h ^= (p[i] ^ sign) - sign
        h *= prime
        if not cython.compiled:
            h &= 0xFFFFFFFF
    return h


@cython.cclass
class Fnv1aOf32(SignedHash):
    """FNV-1a, 32 bits."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits."""
        return mix(buf, start, end, self.sign, 2166136261, 16777619)


@cython.cclass
class Fnv1Of64(SignedHash):
    """FNV-1, 64 bits, of which the low 32 are used."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """The low 32 bits."""
        p: cython.p_uchar = buf
        sign: cython.longlong = self.sign
        h: cython.ulonglong = BASIS_64
        i: cython.Py_ssize_t
        if start >= end:
            return 0
        for i in range(start, end):
            h *= PRIME_64
            h ^= (p[i] ^ sign) - sign
            if not cython.compiled:
                h &= 0xFFFFFFFFFFFFFFFF
        return h & LOW_32


@cython.cclass
class Fnv1aOf64(SignedHash):
    """twemproxy's default `fnv1a_64`: start and prime of the 64-bit function cut to 32 bits, so not FNV-1a at all."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits."""
        return mix(buf, start, end, self.sign, 0x84222325, 0x1B3)
