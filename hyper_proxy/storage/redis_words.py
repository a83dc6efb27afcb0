"""Requests to redis servers, from words."""

from __future__ import annotations

from collections.abc import Sequence


def join_words(argv: Sequence[bytes]) -> bytes:
    """The request that these words make."""
    return b"*%d\r\n%b" % (len(argv), b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in argv]))


def encode(*words: bytes | str | int) -> bytes:
    """The same from texts and numbers."""
    return join_words([word if isinstance(word, bytes) else str(word).encode() for word in words])
