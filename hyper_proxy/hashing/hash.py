# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What every hash function is: an object with a number for the bytes buf[start:end].

Compiled hashes are called through the C table of methods; a plain Python subclass works as well, at the price of a
Python call.
"""

import cython


@cython.cclass
class Hash:
    """Base of all hash functions."""

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """The hash of buf[start:end]: 0 to 2**64-1; signed hashes give their two's complement."""
        raise NotImplementedError(f"{type(self).__name__} does not define value()")
