"""XXH64 is that of its library, compiled and plain."""

from __future__ import annotations

from types import ModuleType

import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.plain import both


@both("hyper_proxy.common.xxh64")
def test_it_is_that_of_any_part_of_the_bytes(module: ModuleType) -> None:
    @given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**64 - 1))
    def check(buf: bytes, start: int, size: int, seed: int) -> None:
        start = min(start, len(buf))
        end = min(start + size, len(buf))
        assert module.xxh64(buf, start, end, seed) == xxhash.xxh64_intdigest(buf[start:end], seed)

    check()


@both("hyper_proxy.common.xxh64")
def test_every_small_size(module: ModuleType) -> None:
    for size in range(140):
        key = bytes(range(size))
        assert module.xxh64(key, 0, size, 0) == xxhash.xxh64_intdigest(key)
