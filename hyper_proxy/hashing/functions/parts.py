# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Hashes of a part of the key only, as the names of Weibo's hashes spell them: -num, -point, -smartnum ...

A part is found by two questions, where it starts and where it ends; together with any hash it makes a new one.
"""

import cython

from hyper_proxy.hashing.hash import Hash

SMART_DIGITS = 5  # a shorter run of digits is not taken for an id


@cython.cclass
class Part:
    """Base: the whole key."""

    @cython.ccall
    def first(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the part starts, at most `end`."""
        return start

    @cython.ccall
    def last(self, buf: bytes, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the part that starts at `first` ends."""
        return end


@cython.cfunc
@cython.inline
def digits_end(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The first place from i on without a digit."""
    while i < end and 48 <= p[i] <= 57:
        i += 1
    return i


@cython.cfunc
@cython.inline
def find(p: cython.p_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t, byte: cython.int) -> cython.Py_ssize_t:
    """The first place from i on with this byte, or `end`."""
    while i < end and p[i] != byte:
        i += 1
    return i


@cython.cclass
class Rest(Part):
    """What stands from `offset` on."""

    offset: cython.Py_ssize_t

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    @cython.ccall
    def first(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """`offset` bytes in."""
        return start + self.offset if start + self.offset < end else end


@cython.cclass
class Number(Rest):
    """The digits from `offset` on."""

    @cython.ccall
    def last(self, buf: bytes, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The first byte that is no digit."""
        return digits_end(buf, first, end)


@cython.cclass
class Until(Rest):
    """What stands from `offset` on before the first `delimiter`, or to the end."""

    delimiter: cython.int

    def __init__(self, delimiter: bytes, offset: int = 0) -> None:
        super().__init__(offset)
        self.delimiter = delimiter[0]

    @cython.ccall
    def last(self, buf: bytes, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The first delimiter."""
        return find(buf, first, end, self.delimiter)


@cython.cclass
class SmartNumber(Part):
    """The first run of at least five digits; without one, the whole key."""

    @cython.ccall
    def first(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where that run starts, or the key."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        stop: cython.Py_ssize_t
        while i < end:
            stop = digits_end(p, i, end)
            if stop - i >= SMART_DIGITS:
                return i
            i = stop + 1
        return start

    @cython.ccall
    def last(self, buf: bytes, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the run of digits ends; a run that is too short means that there was none."""
        stop: cython.Py_ssize_t = digits_end(buf, first, end)
        return stop if stop - first >= SMART_DIGITS else end


@cython.cclass
class Behind(Part):
    """What stands behind the first `opening`; nothing without one."""

    opening: cython.int

    def __init__(self, opening: bytes) -> None:
        self.opening = opening[0]

    @cython.ccall
    def first(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Behind the first opening."""
        i: cython.Py_ssize_t = find(buf, start, end, self.opening)
        return i + 1 if i < end else end


@cython.cclass
class Between(Behind):
    """What stands behind the first `opening` and before the next `closing`; nothing without an opening."""

    closing: cython.int

    def __init__(self, opening: bytes, closing: bytes) -> None:
        super().__init__(opening)
        self.closing = closing[0]

    @cython.ccall
    def last(self, buf: bytes, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next closing."""
        return find(buf, first, end, self.closing)


@cython.cclass
class PartHash(Hash):
    """The hash of a part of the key."""

    part: Part
    inner: Hash

    def __init__(self, part: Part, inner: Hash) -> None:
        self.part = part
        self.inner = inner

    @cython.ccall
    def value(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
        """As many bits as the inner hash has."""
        first: cython.Py_ssize_t = self.part.first(buf, start, end)
        return self.inner.value(buf, first, self.part.last(buf, first, end))
