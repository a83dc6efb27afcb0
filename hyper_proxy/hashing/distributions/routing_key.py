# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""mcrouter's routing key: the part of a memcache key that decides its place.

    /region/cluster/user:1001|#|profile
    \\_____________/\\_______/\\_________/
     routing prefix  routing key   ignored by the hash, kept in the key
"""

import cython

from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.placement import Placement


@cython.cclass
class RoutingKey(Placement):
    """Another placement, of the routing key only."""

    inner: Placement

    def __init__(self, inner: Placement) -> None:
        super().__init__(inner.shards, inner.hash)
        self.inner = inner

    @cython.ccall
    def locate(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The shard of the routing key of buf[start:end]."""
        start = self.after_prefix(buf, start, end)
        return self.inner.locate(buf, start, self.before_stop(buf, start, end))

    @cython.cfunc
    def after_prefix(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the key continues behind a prefix `/region/cluster/`; `start` when it has none."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t
        slashes: cython.int = 0
        if start >= end or p[start] != 47:
            return start
        for i in range(start, end):
            if p[i] == 47:
                slashes += 1
                if slashes == 3:
                    return i + 1
        return start

    @cython.cfunc
    def before_stop(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the first `|#|` begins; `end` when there is none."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t
        for i in range(start, end - 2):
            if p[i] == 124 and p[i + 1] == 35 and p[i + 2] == 124:
                return i
        return end

    def hashed(self, key: bytes) -> bytes:
        """The routing key, or the hash tag in it."""
        start = self.after_prefix(key, 0, len(key))
        return self.inner.hashed(key[start : self.before_stop(key, start, len(key))])


@cython.cclass
class Salted(Hash):
    """A hash of the key with some bytes behind it."""

    inner: Hash
    salt: bytes

    def __init__(self, inner: Hash, salt: bytes) -> None:
        self.inner = inner
        self.salt = salt

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """The hash of buf[start:end] + salt."""
        salted: bytes = buf[start:end] + self.salt
        return self.inner.value(salted, 0, len(salted))
