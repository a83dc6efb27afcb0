"""What a redis server says, as Python data."""

from __future__ import annotations

import pytest

from hyper_proxy.storage.redis_reply import BadReply, parse


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (b":-7\r\n", -7),
        (b"+OK\r\n", b"OK"),
        (b"$0\r\n\r\n", b""),
        (b"$4\r\n\r\n$1\r\n", b"\r\n$1"),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"_\r\n", None),
        (b"*0\r\n", []),
        (b"*3\r\n:1\r\n*1\r\n$1\r\na\r\n$-1\r\n", [1, [b"a"], None]),
        (b"~2\r\n+a\r\n+b\r\n", [b"a", b"b"]),
        (b"%1\r\n+a\r\n:1\r\n", [b"a", 1]),
    ],
)
def test_a_reply_becomes_its_value(reply: bytes, value: object) -> None:
    assert parse(reply) == value


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"", "can't be read"),
        (b":1", "can't be read"),
        (b":x\r\n", "can't be read"),
        (b"?1\r\n", "can't be read"),
        (b"$3\r\nab\r\n", "can't be read"),
        (b"$-2\r\n", "can't be read"),
        (b"*-2\r\n", "can't be read"),
        (b"*2\r\n:1\r\n", "can't be read"),
        (b"*1\r\n" * 5000 + b":1\r\n", "can't be read"),
        (b":1\r\n:2\r\n", "more than one reply"),
        (b"-ERR no\r\n", "it answered ERR no"),
        (b"*2\r\n:1\r\n-ERR no\r\n", "it answered ERR no"),
    ],
)
def test_what_is_no_value_says_why(reply: bytes, why: str) -> None:
    with pytest.raises(BadReply, match=why):
        parse(reply)
