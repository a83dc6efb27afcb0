# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Yann Collet's XXH64 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md): it places keys, and names them in logs."""

import cython

P1 = cython.declare(cython.ulonglong, 0x9E3779B185EBCA87)
P2 = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
P3 = cython.declare(cython.ulonglong, 0x165667B19E3779F9)
P4 = cython.declare(cython.ulonglong, 0x85EBCA77C2B2AE63)
P5 = cython.declare(cython.ulonglong, 0x27D4EB2F165667C5)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def rotate(x: cython.ulonglong, k: cython.int) -> cython.ulonglong:
    """The low 64 bits of x, turned left by k bits."""
    if not cython.compiled:
        x &= 0xFFFFFFFFFFFFFFFF
    x = (x << k) | (x >> (64 - k))
    if not cython.compiled:
        x &= 0xFFFFFFFFFFFFFFFF
    return x


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def word(p: cython.p_uchar, i: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
    """`size` bytes at i, the lowest first."""
    w: cython.ulonglong = 0
    k: cython.Py_ssize_t
    for k in range(size):
        w |= cython.cast(cython.ulonglong, p[i + k]) << (8 * k)
    return w


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def stir(lane: cython.ulonglong, w: cython.ulonglong) -> cython.ulonglong:
    """One word into one lane."""
    return rotate(lane + w * P2, 31) * P1


@cython.ccall
@cython.exceptval(check=False)
def xxh64(buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t, seed: cython.ulonglong) -> cython.ulonglong:
    """The 64 bits of buf[start:end]."""
    p: cython.p_uchar = buf
    i: cython.Py_ssize_t = start
    h: cython.ulonglong = seed + P5
    a: cython.ulonglong = seed + P1 + P2
    b: cython.ulonglong = seed + P2
    c: cython.ulonglong = seed
    d: cython.ulonglong = seed - P1
    if end - start >= 32:
        while i + 32 <= end:
            a = stir(a, word(p, i, 8))
            b = stir(b, word(p, i + 8, 8))
            c = stir(c, word(p, i + 16, 8))
            d = stir(d, word(p, i + 24, 8))
            i += 32
        h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)
        h = (h ^ stir(0, a)) * P1 + P4
        h = (h ^ stir(0, b)) * P1 + P4
        h = (h ^ stir(0, c)) * P1 + P4
        h = (h ^ stir(0, d)) * P1 + P4
    h += cython.cast(cython.ulonglong, end - start)
    while i + 8 <= end:
        h = rotate(h ^ stir(0, word(p, i, 8)), 27) * P1 + P4
        i += 8
    if i + 4 <= end:
        h = rotate(h ^ (word(p, i, 4) * P1), 23) * P2 + P3
        i += 4
    while i < end:
        h = rotate(h ^ (p[i] * P5), 11) * P1
        i += 1
    return avalanche(h)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def avalanche(h: cython.ulonglong) -> cython.ulonglong:
    """The last steps, which spread the last bits over the whole word."""
    if not cython.compiled:
        h &= 0xFFFFFFFFFFFFFFFF
    h = (h ^ (h >> 33)) * P2
    if not cython.compiled:
        h &= 0xFFFFFFFFFFFFFFFF
    h = (h ^ (h >> 29)) * P3
    if not cython.compiled:
        h &= 0xFFFFFFFFFFFFFFFF
    return h ^ (h >> 32)
