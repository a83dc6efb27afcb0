# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What every distribution is: a function from a key to the index of its shard."""

import cython


@cython.cclass
class Placement:
    """Base of all placements; `shards` is the number of servers they choose from."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    @cython.ccall
    def locate(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The shard, 0 to shards-1, of the key buf[start:end]."""
        return 0
