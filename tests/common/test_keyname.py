"""Keys are shown by a digest, or readably, never so that a line or a page could be broken by one."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from hyper_proxy.common.keyname import digest, readable


def test_a_digest_has_eight_bytes_and_the_length() -> None:
    assert digest(b"user:42") == blake2b(b"user:42", digest_size=8).hexdigest() + ":7"
    assert digest(b"") == "e4a6a0577479b2b4:0"


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
