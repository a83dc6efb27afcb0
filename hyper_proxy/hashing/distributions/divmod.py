# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Shard = table[(|hash| / divisor) mod size]: the shape of all of Weibo's distributions but the rings."""

from array import array

import cython

from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.placement import Placement

# How the 64 bits of a hash are read: as they are; the size of a signed number; the size of a signed 32-bit number.
UNSIGNED = 0
SIGNED = 1
SIGNED_32 = 2

LOW_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
TWO_32 = cython.declare(cython.ulonglong, 0x100000000)


@cython.cclass
class DivMod(Placement):
    """Division truncates in the original, so sign and size can be parted before it."""

    reading: cython.int
    divisor: cython.ulonglong
    size: cython.ulonglong
    table: cython.int[::1]

    def __init__(
        self, shards: int, hash: Hash, hash_tag: bytes, table: list[int], divisor: int = 1, reading: int = SIGNED
    ) -> None:
        super().__init__(shards, hash, hash_tag)
        self.reading = reading
        self.divisor = divisor
        self.size = len(table)
        self.table = array("i", table)

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """Read, divide, look up."""
        if self.reading == 1:
            if value >> 63:
                value = 0 - value
                if not cython.compiled:
                    value &= 0xFFFFFFFFFFFFFFFF
        elif self.reading == 2:
            value &= LOW_32
            if value >> 31:
                value = TWO_32 - value
        return self.table[cython.cast(cython.Py_ssize_t, value // self.divisor % self.size)]
