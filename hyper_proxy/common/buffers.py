"""Bytes that a hot loop fills itself: what C does without a Python object has its form in buffers.pxd, here is the same
in plain Python. There it is part of the loop that uses it, for nothing is compiled for this file itself."""

from __future__ import annotations

import sys

NUMBER_BYTES = 8


def new_bytes(size: int) -> bytearray:
    """Something to fill with exactly so many bytes: compiled, a bytes object that nobody else has seen yet."""
    return bytearray(size)


def chars(out: bytearray) -> bytearray:
    """To write single bytes of it, by index."""
    return out


def finished(out: bytearray) -> bytes:
    """The bytes of one that is filled."""
    return bytes(out)


def new_bytearray(size: int) -> bytearray:
    """A bytearray; compiled without the call of its type, and without the zeros."""
    return bytearray(size)


def copy(out: bytearray, at: int, data: bytes, start: int, end: int) -> int:
    """Copy data[start:end] into what new_bytes made, at out[at:]; the index after it."""
    out[at : at + end - start] = data[start:end]
    return at + end - start


def put_number(numbers: bytearray, index: int, number: int) -> None:
    """numbers[index], of eight bytes each, is `number` from now on, which is below 2**64."""
    numbers[NUMBER_BYTES * index : NUMBER_BYTES * (index + 1)] = number.to_bytes(NUMBER_BYTES, sys.byteorder)


def number_at(numbers: bytearray, index: int) -> int:
    """numbers[index]."""
    return int.from_bytes(numbers[NUMBER_BYTES * index : NUMBER_BYTES * (index + 1)], sys.byteorder)
