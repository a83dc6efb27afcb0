# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""XXH64, by hyper_proxy/common/xxh64.py."""

import cython

from hyper_proxy.hashing.hash import Hash

if not cython.compiled:
    from hyper_proxy.common.xxh64 import xxh64


@cython.cclass
class Xxh64(Hash):
    """XXH64 with a fixed seed."""

    seed: cython.ulonglong

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """64 bits."""
        return xxh64(buf, start, end, self.seed)
