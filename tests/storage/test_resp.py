"""Cutting a redis server's bytes into replies, RESP2 and RESP3: however they arrive, compiled and plain."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.kit.pieces import all_ways, bytewise, trailing, whole
from tests.kit.plain import both, plain
from tests.kit.streams import replies

RESP = "hyper_proxy.storage.resp"
SIZES = [*range(16384 - 64, 16384 + 65, 16), 65535, 65536, 65537, 1 << 20]

REPLIES = [
    b"+OK\r\n", b"+\r\n", b"-ERR no such thing\r\n", b":0\r\n", b":-9223372036854775808\r\n",
    b"$0\r\n\r\n", b"$-1\r\n", b"$5\r\nhello\r\n", b"$9\r\n\r\n$1\r\n*-1\r\n", b"$4\r\n\0\xff\r\n\r\n",
    b"*0\r\n", b"*-1\r\n", b"*2\r\n$1\r\na\r\n$-1\r\n", b"*3\r\n*0\r\n*-1\r\n*2\r\n*1\r\n:1\r\n+x\r\n",
    b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n-deep\r\n",
    b"_\r\n", b"#t\r\n", b"#f\r\n", b",1.5\r\n", b",inf\r\n", b",nan\r\n",
    b"(3492890328409238509324850943850943825024385\r\n",
    b"!5\r\nERR x\r\n", b"=7\r\ntxt:abc\r\n", b"~2\r\n+a\r\n:1\r\n", b"~0\r\n", b"%0\r\n",
    b"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n_\r\n", b">2\r\n$7\r\nmessage\r\n%1\r\n:1\r\n#t\r\n",
    b"|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n", b"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", b"|0\r\n*0\r\n",
]  # fmt: skip

MALFORMED = {
    b"HTTP/1.1 400 Bad Request\r\n": "no redis reply begins so",
    b"\r\n": "no redis reply begins so",
    b"\0\0\0\0\r\n": "no redis reply begins so",
    b"hello": "no redis reply begins so",
    b"?": "no redis reply begins so",
    b"+OK\n": "a line does not end in CRLF",
    b"$\n": "a line does not end in CRLF",
    b"$\r\n": "a length is missing or too long",
    b"*\r\n": "a length is missing or too long",
    b"$1234567890123\r\n": "a length is missing or too long",
    b"$-2\r\n": "a length is not a number",
    b"*-2\r\n": "a length is not a number",
    b"$1x\r\n": "a length is not a number",
    b"$?\r\n": "a length is not a number",
    b"*+1\r\n": "a length is not a number",
    b"$1073741825\r\n": "a value is larger than any that redis stores",
    b"$1\r\nabc": "a value does not end where its length says",
    b"$1\r\na\nb": "a value does not end where its length says",
    b"*4294967298\r\n": "an array is larger than any that redis sends",
    b"*1\r\n" * 3 + b"*4294967298\r\n": "an array is larger than any that redis sends",
    b"%-1\r\n": "a map has a negative length",
    b"|-1\r\n": "a map has a negative length",
    b"*2\r\n+a\r\nx\r\n": "no redis reply begins so",
    b"+" + b"x" * ((1 << 20) + 1): "a line has no end",
}


@both(RESP)
@pytest.mark.parametrize("data", REPLIES, ids=repr)
def test_every_type_is_found_however_it_arrives(module: ModuleType, data: bytes) -> None:
    for pieces in all_ways(data):
        assert replies(module.RespParser(), pieces) == [("reply", data), ("rest", 0)], pieces


@both(RESP)
def test_a_stream_of_every_type_is_found_however_it_is_cut(module: ModuleType) -> None:
    expected = [*(("reply", data) for data in REPLIES), ("rest", 0)]
    for pieces in all_ways(b"".join(REPLIES)):
        assert replies(module.RespParser(), pieces) == expected


@both(RESP)
def test_what_follows_stays(module: ModuleType) -> None:
    for data in REPLIES:
        for stream in trailing(data, b"*2\r\n$1\r\na\r\n$-1\r\n"):
            assert replies(module.RespParser(), whole(stream)) == [("reply", data), ("rest", len(stream) - len(data))]


@both(RESP)
@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_buffer_boundaries(module: ModuleType, size: int) -> None:
    value = b"$%d\r\n%b\r\n" % (size, b"\r\n" * (size // 2) + b"x" * (size % 2))
    data = b"*3\r\n" + value + b"$-1\r\n" + value
    stream = data + b":1\r\n"
    expected = [("reply", data), ("reply", b":1\r\n"), ("rest", 0)]
    for cut in (1, 4, 5, 12, size, size + 13, size + 14, size + 24, len(data) - 1, len(data), len(data) + 1):
        assert replies(module.RespParser(), [stream[:cut], stream[cut:]]) == expected
    for step in (1460, 16384, 65536, 262144):
        assert replies(module.RespParser(), [stream[i : i + step] for i in range(0, len(stream), step)]) == expected


@both(RESP)
@pytest.mark.parametrize("data", MALFORMED, ids=lambda data: repr(data[:30]))
def test_what_is_no_reply_is_refused_however_it_arrives(module: ModuleType, data: bytes) -> None:
    ways = all_ways(data) if len(data) < 100 else [whole(data), [data[:7], data[7:]]]
    for pieces in ways:
        assert replies(module.RespParser(), [b":1\r\n", *pieces]) == [("reply", b":1\r\n"), ("error", MALFORMED[data])]


@both(RESP)
def test_replies_that_came_together_with_nonsense_are_not_trusted(module: ModuleType) -> None:
    got = replies(module.RespParser(), [b":1\r\n", b":2\r\nHTTP/1.1\r\n"])
    assert got[1:] == [("error", "no redis reply begins so")]


@both(RESP)
def test_a_long_status_of_a_script_is_no_nonsense(module: ModuleType) -> None:
    data = b"+" + b"x" * 500_000 + b"\r\n"
    pieces = [data[i : i + 65536] for i in range(0, len(data), 65536)]
    assert replies(module.RespParser(), pieces) == [("reply", data), ("rest", 0)]


@both(RESP)
def test_deep_nesting_costs_no_stack(module: ModuleType) -> None:
    data = b"*1\r\n" * 200_000 + b":1\r\n"
    assert replies(module.RespParser(), whole(data)) == [("reply", data), ("rest", 0)]


class Counted(bytes):
    """Counts how often a byte is looked at."""

    looks = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        Counted.looks += 1
        return super().__getitem__(index)


def test_a_look_begins_where_the_last_one_ended() -> None:
    resp = plain(RESP)

    class Parser(resp.RespParser):  # type: ignore[name-defined]
        def scan(self, p: bytes, start: int, n: int) -> int:
            return int(super().scan(Counted(p), start, n))

    data = b"*2000\r\n" + b"$10\r\n0123456789\r\n" * 2000
    parser = Parser()
    Counted.looks = 0
    assert [reply for byte in bytewise(data) for reply in parser.feed(byte)] == [data]
    assert Counted.looks < 30 * len(data)
