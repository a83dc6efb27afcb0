"""The ways in which the same bytes can arrive; every parser must find the same messages in all of them."""

from __future__ import annotations

from collections.abc import Iterator


def whole(data: bytes) -> list[bytes]:
    """At once."""
    return [data]


def bytewise(data: bytes) -> list[bytes]:
    """Byte by byte."""
    return [data[i : i + 1] for i in range(len(data))]


def every_split(data: bytes) -> Iterator[list[bytes]]:
    """In two parts, cut at every position."""
    for cut in range(1, len(data)):
        yield [data[:cut], data[cut:]]


def all_ways(data: bytes) -> Iterator[list[bytes]]:
    """Every way of the above."""
    yield whole(data)
    yield bytewise(data)
    yield from every_split(data)


def trailing(data: bytes, next_message: bytes) -> Iterator[bytes]:
    """With the beginning of the next message behind it, of every length."""
    for end in range(1, len(next_message)):
        yield data + next_message[:end]
