"""Numbers are read as C reads them and cut as memcached cuts them; the cases were tried on memcached 1.6.18."""

from __future__ import annotations

import pytest

from hyper_proxy.protocol.memcache.numbers import read_signed32, read_unsigned32, read_unsigned64


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (b"0", 0), (b"007", 7), (b"+1", 1), (b"\t1", 1), (b"1\t", 1), (b"1\tx", 1), (b"1x", None), (b"x", None),
        (b"", None), (b"+", None), (b"-", None), (b"+-1", None), (b"-1", None), (b"-0", 0),
        (b"18446744073709551615", 2**64 - 1), (b"18446744073709551616", None), (b"-18446744073709551615", 1),
        (b"-9223372036854775808", None), (b"-9223372036854775809", 2**63 - 1), (b"0" * 40 + b"5", 5),
        (b"9" * 40, None), (b"0x10", None), (b"9223372036854775808\t-", None), (b"1\x0b2", 1), (b"\x0c\r3", 3),
        (b"1\x00", None),
    ],
)  # fmt: skip
def test_unsigned_64_bits(word: bytes, number: int | None) -> None:
    assert read_unsigned64(word) == number


@pytest.mark.parametrize(
    ("word", "number"), [(b"4294967295", 2**32 - 1), (b"4294967296", 0), (b"-1", None), (b"x", None)]
)
def test_flags_keep_32_bits(word: bytes, number: int | None) -> None:
    assert read_unsigned32(word) == number


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (b"2147483647", 2**31 - 1), (b"2147483648", -(2**31)), (b"4294967297", 1), (b"-1", -1),
        (b"-2147483649", 2**31 - 1), (b"9223372036854775807", -1), (b"9223372036854775808", None),
        (b"-9223372036854775808", 0), (b"-9223372036854775809", None), (b"1.5", None),
    ],
)  # fmt: skip
def test_signed_32_bits(word: bytes, number: int | None) -> None:
    assert read_signed32(word) == number
