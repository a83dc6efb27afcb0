# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""migrate: keys go from one part to the other one by one, in the order of a hash, over some hours from a moment on."""

from __future__ import annotations

import time
from collections.abc import Sequence

import cython

from hyper_proxy.config.model import Route
from hyper_proxy.hashing.functions.xxh64 import Xxh64

if not cython.compiled:
    from hyper_proxy.hashing.hash import Hash
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.hashing.routes.join import Sum

OLD = 0
NEW = 1
LOOK_AGAIN = 64  # keys: so often the clock is read while the migration goes on


@cython.cclass
class ByTime(Sum):
    """The parts are the old home and the new one.

    A key has moved when its hash, as a share of all 2^64 values, is below the share of the time that has passed. The
    hash has nothing to do with those by which keys are spread over servers.
    """

    def __init__(self, route: Route, parts: Sequence[Placement]) -> None:
        super().__init__(parts)
        self.begins = route.option("begins")
        self.seconds = route.option("hours") * 3600
        self.order: Hash = Xxh64()
        self.moved = 0.0
        self.left = 0

    @cython.ccall
    def which(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if self.left == 0:
            self.left = LOOK_AGAIN
            self.moved = min(1.0, max(0.0, (time.time() - self.begins) / self.seconds))
        self.left -= 1
        if self.moved >= 1:
            return NEW
        share: cython.double = self.order.value(buf, start, end) / 18446744073709551616.0
        return NEW if share < self.moved else OLD

    def everywhere(self, key: bytes) -> list[int]:
        """Not all clocks are the same, nor are all that are read at the same time."""
        return self.of_parts(key, (OLD, NEW))
