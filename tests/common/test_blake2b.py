"""The short digest is that of hashlib, compiled and plain."""

from __future__ import annotations

from hashlib import blake2b
from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.plain import both


@both("hyper_proxy.common.blake2b")
def test_it_is_blake2b_of_any_part_of_the_bytes(module: ModuleType) -> None:
    @given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 300))
    def check(buf: bytes, start: int, size: int) -> None:
        start = min(start, len(buf))
        end = min(start + size, len(buf))
        expected = blake2b(buf[start:end], digest_size=8).digest()
        assert module.digest64(buf, start, end).to_bytes(8, "little") == expected

    check()


@both("hyper_proxy.common.blake2b")
def test_every_size_around_a_block(module: ModuleType) -> None:
    for size in range(140):
        key = bytes(range(size))
        assert module.digest64(key, 0, size).to_bytes(8, "little") == blake2b(key, digest_size=8).digest()
