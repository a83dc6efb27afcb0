# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The two lookups under most distributions: a table indexed by the hash, and a ring of points.

A distribution that differs only in how its table or its points are made is a plain function that returns one of these.
"""

from array import array

import cython

from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.placement import Placement


@cython.cclass
class Table(Placement):
    """Shard = table[hash modulo length of the table]."""

    table: cython.int[::1]
    size: cython.ulonglong

    def __init__(
        self, shards: int, hash: Hash | None, hash_tag: bytes, table: list[int], empty_tag: bool = False
    ) -> None:
        super().__init__(shards, hash, hash_tag, empty_tag)
        self.table = array("i", table)
        self.size = len(table)

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The entry under the hash modulo the size of the table."""
        return self.table[cython.cast(cython.Py_ssize_t, value % self.size)]


@cython.cclass
class Ring(Placement):
    """Shard = owner of the first point that is not below the hash; above the last point, of the first one.

    points  (point, owner) in ascending order of the points; of equal points the first in the list wins
    mask    what of the hash is compared: twemproxy and its kin have 32 bits, Envoy 64
    """

    points: cython.ulonglong[::1]
    owners: cython.int[::1]
    count: cython.Py_ssize_t
    mask: cython.ulonglong

    def __init__(
        self, shards: int, hash: Hash | None, hash_tag: bytes, points: list[tuple[int, int]], bits: int = 32
    ) -> None:
        super().__init__(shards, hash, hash_tag)
        self.points = array("Q", [point for point, _ in points])
        self.owners = array("i", [owner for _, owner in points])
        self.count = len(points)
        self.mask = (1 << bits) - 1

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The owner of the place of this hash on the ring."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.count
        middle: cython.Py_ssize_t
        value &= self.mask
        while low < high:
            middle = (low + high) >> 1
            if self.points[middle] < value:
                low = middle + 1
            else:
                high = middle
        return self.owners[low if low < self.count else 0]

    def equal_points(self) -> list[tuple[int, int]]:
        """(first owner, hidden owner) of every point that a second server has too: its keys depend on the sorting."""
        return [
            (self.owners[i - 1], self.owners[i])
            for i in range(1, self.count)
            if self.points[i] == self.points[i - 1] and self.owners[i] != self.owners[i - 1]
        ]

    def ring(self) -> list[tuple[int, int]]:
        """(point, owner) of the whole ring, in order."""
        return [(self.points[i], self.owners[i]) for i in range(self.count)]
