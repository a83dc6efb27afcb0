# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Latencies of one kind, 1 microsecond to 100 seconds, counted in cells that are at most 1/16 wide.

The cells are log-linear: 0..15 us have a cell each, above that every power of two is cut into 16. Adding is a few
shifts and one integer addition; histograms of many workers merge by adding cell to cell, as percentiles cannot.

On the request's path:      from hyper_proxy.stats.histogram cimport Histogram     (in the user's .pxd)
                            cdef Histogram latency
                            latency.add(microseconds)             # a C call when compiled
                            latency.add(microseconds, n)          # n requests that took the same time
"""

import cython

SUB_BUCKETS = 16  # cells per power of two: a percentile is at most 1/16 too high
LONGEST_US = 100_000_000  # whatever took longer counts as this
CELLS = 376  # the cell of LONGEST_US is the last one; histogram.pxd repeats the number


@cython.final
@cython.cclass
class Histogram:
    """Counts by cell, and the sum of all that was added (`sum_us`)."""

    def __init__(self) -> None:
        self.sum_us = 0
        if not cython.compiled:
            self.cells = [0] * CELLS

    @cython.ccall
    def add(self, us: cython.longlong, n: cython.longlong = 1) -> cython.int:
        """Count `n` events of `us` microseconds; a negative time, as of a clock that was set back, counts as 0."""
        scaled: cython.longlong
        octave: cython.Py_ssize_t = 0
        us = 0 if us < 0 else us
        us = 100_000_000 if us > 100_000_000 else us  # numbers, not names: a global costs a look-up here
        scaled = us
        while scaled >= 32:
            scaled >>= 1
            octave += 1
        self.cells[16 * octave + scaled] += n
        self.sum_us += us * n
        return 0

    def count(self) -> int:
        """How many events were added."""
        return sum([self.cells[cell] for cell in range(CELLS)])

    def counts(self) -> list:
        """[[cell, count], ...] of the cells that are not empty, lowest first."""
        return [[cell, self.cells[cell]] for cell in range(CELLS) if self.cells[cell]]

    def snapshot(self) -> dict:
        """What travels as JSON and what merge.py understands: {"sum_us": n, "cells": [[cell, count], ...]}."""
        return {"sum_us": self.sum_us, "cells": self.counts()}


def highest_us(cell: int) -> int:
    """The longest time, in microseconds, that is counted in a cell."""
    if cell < 2 * SUB_BUCKETS:
        return cell
    octave = cell // SUB_BUCKETS - 1
    return min(((cell - SUB_BUCKETS * octave + 1) << octave) - 1, LONGEST_US)
