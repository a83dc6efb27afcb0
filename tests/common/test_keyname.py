"""Keys are shown by a digest, or readably, never so that a line or a page could be broken by one."""

from __future__ import annotations

import pytest

from hyper_proxy.common.keyname import digest, readable


def test_a_digest_is_that_of_xxhsum_with_the_length() -> None:
    assert digest(b"user:42") == "dc1fea7da8d2d1c2:7"
    assert digest(b"") == "ef46db3751d8e999:0"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (b"user:42", "user:42"),
        (b"a b\n\x00\xff", "a b\\x0a\\x00\\xff"),
        (b"k" * 64, "k" * 64),
        (b"k" * 65, "k" * 64 + "~" + digest(b"k" * 65)),
    ],
)
def test_readable_keys_are_printable_and_short(key: bytes, shown: str) -> None:
    assert readable(key) == shown
    assert readable(key).isprintable()
