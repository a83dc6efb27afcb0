# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Which keys are asked for most, and which have the largest values: of the requests that are sampled.

Hot keys are found by the Space-Saving algorithm (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and
top-k elements in data streams", 2005): a fixed number of counters, of which a new key takes over the least one with its
count. That count is the newcomer's error; what is shown is the count without it, so a key that is not hot never looks
so.
"""

from __future__ import annotations

from operator import itemgetter

import cython

TRACKED = 64  # hotkeys.pxd repeats the number
SHOWN = 32
HALF_LIFE_S = 60.0
LEAST = 1.5  # sampled requests, faded: a key that was met once is not hot
FORGET_S = 600.0  # a large value that is not seen for so long
LONGEST_KEY = 512  # longer ones are not followed: they would fill the memory that this may cost


@cython.final
@cython.cclass
class HotKeys:
    """Counts fade: a request counts half after a minute, a quarter after two."""

    def __init__(self) -> None:
        self.places: dict = {}
        self.keys: list = []
        if not cython.compiled:
            self.counts = [0.0] * TRACKED
            self.errors = [0.0] * TRACKED

    @cython.ccall
    def add(self, key: bytes, weight: cython.double) -> None:
        """The key was asked for, in a sample that stands for `weight` requests."""
        place: object = self.places.get(key)
        i: cython.Py_ssize_t
        least: cython.Py_ssize_t = 0
        if place is not None:
            i = place
            self.counts[i] += weight
            return
        if len(key) > 512:  # LONGEST_KEY; a global costs a look-up here
            return
        i = len(self.keys)
        if i < 64:  # TRACKED
            self.keys.append(key)
            self.places[key] = i
            self.counts[i] = weight
            self.errors[i] = 0.0
            return
        for i in range(1, 64):
            if self.counts[i] < self.counts[least]:
                least = i
        del self.places[self.keys[least]]
        self.keys[least] = key
        self.places[key] = least
        self.errors[least] = self.counts[least]
        self.counts[least] += weight

    def fade(self, seconds: float) -> None:
        """So much time has passed."""
        share = 0.5 ** (seconds / HALF_LIFE_S)
        for i in range(len(self.keys)):
            self.counts[i] *= share
            self.errors[i] *= share

    def top(self, unit: float) -> list:
        """[(key, count), ...], the hottest first, at most SHOWN; a count below LEAST * unit is noise."""
        rows = [(key, self.counts[i] - self.errors[i]) for i, key in enumerate(self.keys)]
        rows = [row for row in rows if row[1] >= LEAST * unit]
        return sorted(rows, key=itemgetter(1), reverse=True)[:SHOWN]


@cython.final
@cython.cclass
class BigKeys:
    """The largest values of late, each with the size that it was last seen with. at: the time of now, in seconds."""

    def __init__(self, at: float) -> None:
        self.rows: dict = {}  # key: (bytes, when it was seen)
        self.floor = 0  # what is not larger than this is not among the largest
        self.at = at

    @cython.ccall
    def add(self, key: bytes, size: cython.Py_ssize_t) -> None:
        """The key's value has so many bytes."""
        if key not in self.rows and (size <= self.floor or len(key) > LONGEST_KEY):
            return
        self.rows[key] = (size, self.at)
        if len(self.rows) > SHOWN:
            least = min(zip(self.rows.values(), self.rows, strict=True))[1]
            self.floor = self.rows.pop(least)[0]

    def forget(self, at: float) -> None:
        """It is `at` seconds now: drop what was not seen for FORGET_S."""
        self.at = at
        kept = {key: row for key, row in self.rows.items() if row[1] > at - FORGET_S}
        if len(kept) < len(self.rows):
            self.rows = kept
            self.floor = 0

    def top(self) -> list:
        """[(key, bytes), ...], the largest first."""
        rows = [(key, row[0]) for key, row in self.rows.items()]
        return sorted(rows, key=itemgetter(1), reverse=True)
