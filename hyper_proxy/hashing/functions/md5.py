# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The first four bytes of an MD5 digest (RFC 1321), little endian: the original ketama's hash of keys."""

from hashlib import md5

import cython

from hyper_proxy.hashing.hash import Hash


@cython.cclass
class Md5(Hash):
    """MD5, first 32 bits; the digest itself is computed by hashlib."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits; 0 for an empty key, as in twemproxy."""
        digest: bytes
        p: cython.p_uchar
        if start >= end:
            return 0
        digest = md5(buf[start:end], usedforsecurity=False).digest()
        p = digest
        return p[0] | p[1] << 8 | p[2] << 16 | cython.cast(cython.ulonglong, p[3]) << 24
