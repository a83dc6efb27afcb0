"""Yann Collet's XXH3 of 64 bits (xxhash.com), seed 0, computed by the xxhash package."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from hyper_proxy.hashing.hash import Hash


class Xxh3(Hash):
    """XXH3 of 64 bits."""

    def value(self, buf: bytes, start: int, end: int) -> int:
        """64 bits."""
        return xxh3_64_intdigest(buf[start:end])
