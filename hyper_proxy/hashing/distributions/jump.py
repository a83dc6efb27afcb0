# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Jump consistent hash (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014).

Servers have no names here, only numbers: grow and shrink the list at its end only.
"""

import cython

from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

MULTIPLIER = cython.declare(cython.ulonglong, 2862933555777941757)


@cython.cclass
class Jump(Placement):
    """The shard to which the last jump below the number of shards leads."""

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """All 64 bits of the hash are used."""
        here: cython.longlong = -1
        there: cython.longlong = 0
        shards: cython.longlong = self.shards
        while there < shards:
            here = there
            value = value * MULTIPLIER + 1
            if not cython.compiled:
                value &= 0xFFFFFFFFFFFFFFFF
            there = cython.cast(
                cython.longlong, (here + 1) * (2147483648.0 / cython.cast(cython.double, (value >> 33) + 1))
            )
        return here


def jump(recipe: Recipe) -> Placement:
    """Jump over the listed servers, in their order."""
    return Jump(len(recipe.servers), recipe.hash, recipe.hash_tag)
