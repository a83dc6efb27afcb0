# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Cyclic redundancy checks, table driven: twemproxy's crc16, crc32, crc32a, and the CRC-16/XMODEM of a redis cluster.

The tables are computed here from the polynomials (0x1021, and 0xEDB88320 reflected) and shared by all objects.
"""

from array import array

import cython

from hyper_proxy.hashing.hash import Hash


def table_16() -> array:
    """256 entries of the CRC with polynomial 0x1021, most significant bit first."""
    entries = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ (0x1021 if crc & 0x8000 else 0)
        entries.append(crc & 0xFFFF)
    return array("I", entries)


def table_32() -> array:
    """256 entries of CRC-32/ISO-HDLC (zlib's), least significant bit first."""
    entries = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
        entries.append(crc)
    return array("I", entries)


# Named: a literal above 2**31 would make the compiled code use Python numbers.
ONES = cython.declare(cython.uint, 0xFFFFFFFF)
TABLE_16 = table_16()
TABLE_32 = table_32()


@cython.cclass
class Crc16(Hash):
    """twemproxy's crc16: never cut to 16 bits, so 32 bits of result. With cut=True CRC-16/XMODEM."""

    table: cython.uint[::1]
    mask: cython.uint

    def __init__(self, cut: bool = False) -> None:
        self.table = TABLE_16
        self.mask = 0xFFFF if cut else 0xFFFFFFFF

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """32 bits, or 16 when cut."""
        p: cython.p_uchar = buf
        crc: cython.uint = 0
        i: cython.Py_ssize_t
        for i in range(start, end):
            crc = (crc << 8) ^ self.table[((crc >> 8) ^ p[i]) & 0xFF]
            if not cython.compiled:
                crc &= 0xFFFFFFFF
        return crc & self.mask


@cython.cclass
class Crc32(Hash):
    """CRC-32 as zlib computes it, then (crc >> shift) & mask: all of it for crc32a, (16, 0x7fff) for crc32."""

    table: cython.uint[::1]
    shift: cython.int
    mask: cython.uint

    def __init__(self, shift: int = 0, mask: int = 0xFFFFFFFF) -> None:
        self.table = TABLE_32
        self.shift = shift
        self.mask = mask

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """At most 32 bits; 0 for an empty key."""
        p: cython.p_uchar = buf
        crc: cython.uint = 0xFFFFFFFF
        i: cython.Py_ssize_t
        for i in range(start, end):
            crc = (crc >> 8) ^ self.table[(crc ^ p[i]) & 0xFF]
        return ((crc ^ ONES) >> self.shift) & self.mask
