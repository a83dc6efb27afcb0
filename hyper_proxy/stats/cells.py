# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A fixed row of counters and gauges, addressed by number.

On the request's path:      from hyper_proxy.stats.cells cimport Cells             (in the user's .pxd)
                            cdef Cells cells
                            cells.add(index, n)              # a C call when compiled; n may be negative (gauges)

The numbers are the positions of the names in table.py; table.py names them as constants.
"""

import cython

MOST = 24  # cells.pxd repeats the number


@cython.final
@cython.cclass
class Cells:
    """Counters and gauges of one place (an instance, a node); they start at 0."""

    def __init__(self, names: tuple) -> None:
        if len(names) > MOST:
            raise ValueError(f"{len(names)} names, but a row holds {MOST} cells")
        self.names = names
        if not cython.compiled:
            self.values = [0] * MOST

    @cython.ccall
    def add(self, index: cython.Py_ssize_t, n: cython.longlong) -> cython.longlong:
        """Add `n` to a cell; the result is its new value. IndexError when there is no such cell."""
        if index < 0 or index >= 24:
            raise IndexError(index)
        self.values[index] += n
        return self.values[index]

    def get(self, index: cython.Py_ssize_t) -> int:
        """The value of a cell."""
        return self.add(index, 0)

    def snapshot(self) -> dict:
        """{name: value} of every cell."""
        return {self.names[index]: self.values[index] for index in range(len(self.names))}
