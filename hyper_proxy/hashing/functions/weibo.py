# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The hash functions of Weibo's proxies (weibocom/breeze, sharding/src/hash).

Bytes have no sign; hashes are signed numbers of 64 bits, given here as their two's complement.
"""

from array import array
from zlib import crc32

import cython

from hyper_proxy.hashing.functions.crc import TABLE_32
from hyper_proxy.hashing.hash import Hash

# Named: a literal above 2**31 would make the compiled code use Python numbers.
TWO_31 = cython.declare(cython.uint, 0x80000000)
TWO_32 = cython.declare(cython.ulonglong, 0x100000000)


def table_64() -> array:
    """256 entries of the CRC-64 with Jones' polynomial, least significant bit first."""
    entries = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
        entries.append(crc)
    return array("Q", entries)


TABLE_64 = table_64()


@cython.cfunc
@cython.inline
def absolute(h: cython.uint) -> cython.ulonglong:
    """|h| of h as a signed number of 32 bits; -2**31 has no absolute value there and stays what it is."""
    value: cython.ulonglong = h
    if h == TWO_31:
        value = 0 - value
    elif h > TWO_31:
        value = TWO_32 - value
    if not cython.compiled:
        value &= 0xFFFFFFFFFFFFFFFF
    return value


@cython.cclass
class Bkdr(Hash):
    """h = h * seed + byte in 32 bits; then the absolute value, or the low 31 bits."""

    seed: cython.uint
    cut: cython.bint

    def __init__(self, seed: int = 31, cut: bool = False) -> None:
        self.seed = seed
        self.cut = cut

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """31 bits."""
        p: cython.p_uchar = buf
        h: cython.uint = 0
        i: cython.Py_ssize_t
        for i in range(start, end):
            h = h * self.seed + p[i]
            if not cython.compiled:
                h &= 0xFFFFFFFF
        return h & 0x7FFFFFFF if self.cut else absolute(h)


@cython.cclass
class Crc32Absolute(Hash):
    """CRC-32 as a signed number, without its sign (crc32abs and crc32local)."""

    table: cython.uint[::1]

    def __init__(self) -> None:
        self.table = TABLE_32

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """31 bits."""
        p: cython.p_uchar = buf
        crc: cython.uint = 0
        i: cython.Py_ssize_t
        crc = ~crc
        if not cython.compiled:
            crc &= 0xFFFFFFFF
        for i in range(start, end):
            crc = (crc >> 8) ^ self.table[(crc ^ p[i]) & 0xFF]
        crc = ~crc
        if not cython.compiled:
            crc &= 0xFFFFFFFF
        return absolute(crc)


@cython.cclass
class Crc64(Hash):
    """CRC-64 with Jones' polynomial, from 0."""

    table: cython.ulonglong[::1]

    def __init__(self) -> None:
        self.table = TABLE_64

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """64 bits."""
        p: cython.p_uchar = buf
        crc: cython.ulonglong = 0
        i: cython.Py_ssize_t
        for i in range(start, end):
            crc = (crc >> 8) ^ self.table[cython.cast(cython.Py_ssize_t, (crc ^ p[i]) & 0xFF)]
        return crc


@cython.cclass
class Raw(Hash):
    """The leading digits as a number of 64 bits; with strict=True any other byte makes it 0."""

    strict: cython.bint

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """64 bits."""
        p: cython.p_uchar = buf
        number: cython.ulonglong = 0
        i: cython.Py_ssize_t
        for i in range(start, end):
            if not 48 <= p[i] <= 57:
                return 0 if self.strict else number
            number = number * 10 + (p[i] - 48)
            if not cython.compiled:
                number &= 0xFFFFFFFFFFFFFFFF
        return number


class Crc32MixedNumber(Hash):
    """crc32-mixnum: CRC-32 of all digits of the key, in their order."""

    def value(self, buf: bytes, start: int, end: int) -> int:
        """32 bits."""
        return crc32(bytes(byte for byte in buf[start:end] if 48 <= byte <= 57))


class LongBytesCrc32(Hash):
    """lbcrc32local: the leading digits as a number, its 8 bytes with the highest first, their crc32local."""

    def __init__(self) -> None:
        self.raw = Raw()
        self.crc = Crc32Absolute()

    def value(self, buf: bytes, start: int, end: int) -> int:
        """31 bits."""
        return self.crc.value(self.raw.value(buf, start, end).to_bytes(8, "big"), 0, 8)


class BkdrCrc32(Hash):
    """bkdrabscrc32: the leading digits, their bkdr in decimal, its CRC-32; 0 without digits."""

    def __init__(self) -> None:
        self.bkdr = Bkdr()

    def value(self, buf: bytes, start: int, end: int) -> int:
        """32 bits."""
        key = buf[start:end]
        digits = key[: len(key) - len(key.lstrip(b"0123456789"))]
        if not digits:
            return 0
        bkdr = self.bkdr.value(digits, 0, len(digits))
        return crc32(str(min(bkdr, 2**64 - bkdr)).encode())


class RawOrCrc32(Hash):
    """rawcrc32local: digits up to the end or to a "_" are the hash; all else, and 0 alone, has its crc32local."""

    def __init__(self) -> None:
        self.raw = Raw()
        self.crc = Crc32Absolute()

    def value(self, buf: bytes, start: int, end: int) -> int:
        """64 bits."""
        key = buf[start:end]
        rest = key.lstrip(b"0123456789")
        number = self.raw.value(key, 0, len(key))
        if rest.startswith(b"_"):
            return number
        if rest or number == 0:
            return self.crc.value(key, 0, len(key))
        return number if number < 2**63 else 0
