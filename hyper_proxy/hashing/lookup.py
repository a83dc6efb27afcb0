# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The lookups under most distributions: the hash modulo the servers, a table indexed by the hash, a ring of points.

A distribution that differs only in how its table or its points are made is a plain function that returns one of these.
"""

from array import array
from bisect import bisect_left

import cython

from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.placement import Placement

POINTS_SPREAD = 4  # starts per point of a ring


@cython.cclass
class Modulo(Placement):
    """Shard = hash modulo number of servers."""

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The remainder."""
        return cython.cast(cython.Py_ssize_t, value % cython.cast(cython.ulonglong, self.shards))


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
    highest the last point: from above it, keys go round to the first
    starts  for each value of the hash's upper bits, the first point that can be its answer: there are more such values
            than points, so the search ends after a step or two, where a binary search would be guessing at every one
    """

    points: cython.ulonglong[::1]
    owners: cython.int[::1]
    starts: cython.int[::1]
    mask: cython.ulonglong
    highest: cython.ulonglong
    shift: cython.int

    def __init__(
        self, shards: int, hash: Hash | None, hash_tag: bytes, points: list[tuple[int, int]], bits: int = 32
    ) -> None:
        super().__init__(shards, hash, hash_tag)
        values = [point for point, _ in points]
        self.points = array("Q", values)
        self.owners = array("i", [owner for _, owner in points])
        self.mask = (1 << bits) - 1
        highest = max(values)
        self.highest = highest
        # Not all rings fill their range: 15-bit points, or 31-bit points under 64-bit hashes.
        self.shift = max(0, highest.bit_length() - (POINTS_SPREAD * len(values)).bit_length())
        uppers = range((highest >> self.shift) + 1)
        self.starts = array("i", [bisect_left(values, upper << self.shift) for upper in uppers])

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The owner of the place of this hash on the ring."""
        index: cython.Py_ssize_t
        value &= self.mask
        if value > self.highest:
            return self.owners[0]
        index = self.starts[cython.cast(cython.Py_ssize_t, value >> self.shift)]
        while self.points[index] < value:
            index += 1
        return self.owners[index]

    def equal_points(self) -> list[tuple[int, int]]:
        """(first owner, hidden owner) of every point that a second server has too: its keys depend on the sorting."""
        return [
            (self.owners[i - 1], self.owners[i])
            for i in range(1, len(self.points))
            if self.points[i] == self.points[i - 1] and self.owners[i] != self.owners[i - 1]
        ]

    def ring(self) -> list[tuple[int, int]]:
        """(point, owner) of the whole ring, in order."""
        return [(self.points[i], self.owners[i]) for i in range(len(self.points))]
