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


@cython.cclass
class SignedHash(Hash):
    """Base of those that take the bytes of a key for C's `char`, which has a sign where `signed`."""

    sign: cython.int

    def __init__(self, signed: bool = True) -> None:
        # (b ^ 0x80) - 0x80 extends the sign of b without a branch; with 0 it leaves b alone.
        self.sign = 0x80 if signed else 0
