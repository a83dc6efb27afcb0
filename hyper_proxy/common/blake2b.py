# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""BLAKE2b with a digest of 8 bytes (RFC 7693), for what names a key in much less than a microsecond.

Compiled it makes no Python object of a key that fits into one block; plain, and for longer ones, hashlib does it.
"""

from __future__ import annotations

from hashlib import blake2b

import cython

BLOCK = 128  # bytes
# The order in which each round takes the words of the block (RFC 7693, 2.7), in hexadecimal; then it begins anew.
SCHEDULE = (
    "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
    "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
)  # fmt: skip
ROUNDS = 12
# The first 64 bits of the fractions of the square roots of the first primes, as in SHA-512 (RFC 7693, 2.6).
ROOTS = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)  # fmt: skip

if cython.compiled:
    order = cython.declare(cython.uchar[192])
    roots = cython.declare(cython.ulonglong[8])  # a number of this size in a function is a Python object there
    for number in range(8):
        roots[number] = ROOTS[number]
    for number in range(ROUNDS * 16):
        order[number] = int(SCHEDULE[number // 16 % len(SCHEDULE)][number % 16], 16)


@cython.ccall
@cython.exceptval(-1, check=True)
def digest64(buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
    """The digest of buf[start:end], its first byte the lowest."""
    if not cython.compiled or end - start > 128:
        return int.from_bytes(blake2b(buf[start:end], digest_size=8).digest(), "little")
    if cython.compiled:
        p: cython.p_uchar = buf
        m = cython.declare(cython.ulonglong[16])
        v = cython.declare(cython.ulonglong[16])
        i: cython.int
        at: cython.int
        size: cython.Py_ssize_t = end - start
        for i in range(16):
            m[i] = 0
        for i in range(size):
            m[i >> 3] |= cython.cast(cython.ulonglong, p[start + i]) << ((i & 7) << 3)
        for i in range(8):
            v[i] = v[i + 8] = roots[i]
        v[0] ^= 0x01010008  # no key, digests of 8 bytes
        v[12] ^= size
        v[14] = ~v[14]  # the last block
        for i in range(12):
            at = i << 4
            stir(v, 0, 4, 8, 12, m[order[at]], m[order[at + 1]])
            stir(v, 1, 5, 9, 13, m[order[at + 2]], m[order[at + 3]])
            stir(v, 2, 6, 10, 14, m[order[at + 4]], m[order[at + 5]])
            stir(v, 3, 7, 11, 15, m[order[at + 6]], m[order[at + 7]])
            stir(v, 0, 5, 10, 15, m[order[at + 8]], m[order[at + 9]])
            stir(v, 1, 6, 11, 12, m[order[at + 10]], m[order[at + 11]])
            stir(v, 2, 7, 8, 13, m[order[at + 12]], m[order[at + 13]])
            stir(v, 3, 4, 9, 14, m[order[at + 14]], m[order[at + 15]])
        return roots[0] ^ 0x01010008 ^ v[0] ^ v[8]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def stir(v: cython.p_ulonglong, a: cython.int, b: cython.int, c: cython.int, d: cython.int, x: cython.ulonglong,
         y: cython.ulonglong) -> cython.void:
    """Two words of the block into four of the state; compiled only."""
    v[a] = v[a] + v[b] + x
    v[d] = v[d] ^ v[a]
    v[d] = (v[d] >> 32) | (v[d] << 32)
    v[c] = v[c] + v[d]
    v[b] = v[b] ^ v[c]
    v[b] = (v[b] >> 24) | (v[b] << 40)
    v[a] = v[a] + v[b] + y
    v[d] = v[d] ^ v[a]
    v[d] = (v[d] >> 16) | (v[d] << 48)
    v[c] = v[c] + v[d]
    v[b] = v[b] ^ v[c]
    v[b] = (v[b] >> 63) | (v[b] << 1)
