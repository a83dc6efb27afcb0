"""Where a redis request ends: however its bytes arrive, compiled and plain."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.kit.pieces import all_ways, bytewise, trailing, whole
from tests.kit.plain import both, plain
from tests.kit.streams import Requests, requests

SIZES = [*range(16384 - 64, 16384 + 65, 16), 65535, 65536, 65537, 1 << 20]

REQUESTS: dict[bytes, tuple[object, ...]] = {
    b"*1\r\n$4\r\nPING\r\n": ("request", b"PING"),
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n": ("request", b"GET", b"k"),
    b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n": ("request", b"SET", b"", b""),
    b"*2\r\n$3\r\nGET\r\n$8\r\n\r\n$1\r\n\r\n\r\n": ("request", b"GET", b"\r\n$1\r\n\r\n"),
    b"*3\r\n$3\r\nSET\r\n$4\r\n\0\xff\n*\r\n$11\r\n0123456789a\r\n": ("request", b"SET", b"\0\xff\n*", b"0123456789a"),
    b"*1\r\n$0\r\n\r\n": ("request", b""),
    b"*1\r\n$4\r\nPINGxx": ("request", b"PING"),  # redis does not look at these two bytes either
    b"*0\r\n": ("nothing", b"*0\r\n"),
    b"*-1\r\n": ("nothing", b"*-1\r\n"),
    b"*-10\r\n": ("nothing", b"*-10\r\n"),
    b"PING\r\n": ("line", b"PING"),
    b"PING\n": ("line", b"PING"),
    b"\r\n": ("line",),
    b"\n": ("line",),
    b"  get   key \t x \r\n": ("line", b"get", b"key", b"x"),
    b'set "a key" \'it\\\'s\'\r\n': ("line", b"set", b"a key", b"it's"),
    b'set "\\x41\\n\\r\\t\\b\\a\\"\\\\"\r\n': ("line", b"set", b'A\n\r\t\b\a"\\'),
    b'echo ""\r\n': ("line", b"echo", b""),
    b'echo "\\q\\xzz"\r\n': ("line", b"echo", b"qxzz"),
    b"echo a\"b\"\r\n": ("line", b"echo", b"ab"),
    b"get a\0b c\r\n": ("line", b"get", b"a"),
    b"$1\r\n": ("line", b"$1"),
}  # fmt: skip

TOO_MANY = "invalid multibulk length: more than limits.max_arguments (1048576)"
TOO_LONG = "invalid bulk length: more than limits.max_value_bytes (536870912)"
MALFORMED: dict[bytes, str] = {
    b"*\r\n": "invalid multibulk length",
    b"*x\r\n": "invalid multibulk length",
    b"*1x\r\n": "invalid multibulk length",
    b"*01\r\n$4\r\nPING\r\n": "invalid multibulk length",
    b"*00\r\n": "invalid multibulk length",
    b"*09999999999\r\n": "invalid multibulk length",
    b"*+1\r\n": "invalid multibulk length",
    b"* 1\r\n": "invalid multibulk length",
    b"*-x\r\n": "invalid multibulk length",
    b"*1\n$4\r\nPING\r\n": "invalid multibulk length",
    b"*1\rx$4\r\nPING\r\n": "invalid multibulk length",
    b"*2147483648\r\n": TOO_MANY,
    b"*99999999999999999999999999\r\n": TOO_MANY,
    b"*-" + b"9" * 40: "invalid multibulk length",
    b"*1\r\nPING\r\n": "expected '$', got 'P'",
    b"*1\r\n\r\n": "expected '$', got '\r'",
    b"*1\r\n:4\r\n": "expected '$', got ':'",
    b"*2\r\n$3\r\nGET\r\n*1\r\n": "expected '$', got '*'",
    b"*1\r\n$-1\r\n": "invalid bulk length",
    b"*1\r\n$\r\n": "invalid bulk length",
    b"*1\r\n$4x\r\nPING\r\n": "invalid bulk length",
    b"*1\r\n$04\r\nPING\r\n": "invalid bulk length",
    b"*1\r\n$+4\r\nPING\r\n": "invalid bulk length",
    b"*1\r\n$4\nPING\r\n": "invalid bulk length",
    b"*1\r\n$536870913\r\n": TOO_LONG,
    b"*1\r\n$99999999999999999999999999\r\n": TOO_LONG,
    b'set "a\r\n': "unbalanced quotes in request",
    b"set 'a\r\n": "unbalanced quotes in request",
    b'set "a"b\r\n': "unbalanced quotes in request",
    b'set "a\\"\r\n': "unbalanced quotes in request",
}


@both("hyper_proxy.protocol.redis.framing")
@pytest.mark.parametrize("data", REQUESTS, ids=repr)
def test_every_form_is_found_however_it_arrives(module: ModuleType, data: bytes) -> None:
    for pieces in all_ways(data):
        assert requests(module, pieces) == [REQUESTS[data], ("rest", b"")], pieces


@both("hyper_proxy.protocol.redis.framing")
def test_a_pipeline_of_every_form_is_found_however_it_is_cut(module: ModuleType) -> None:
    data = b"".join(REQUESTS)
    expected = [*REQUESTS.values(), ("rest", b"")]
    for pieces in all_ways(data):
        assert requests(module, pieces) == expected


@both("hyper_proxy.protocol.redis.framing")
def test_what_follows_stays(module: ModuleType) -> None:
    following = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
    for data, event in REQUESTS.items():
        for stream in trailing(data, following):
            assert requests(module, whole(stream)) == [event, ("rest", stream[len(data) :])]


@both("hyper_proxy.protocol.redis.framing")
@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_buffer_boundaries(module: ModuleType, size: int) -> None:
    words = [b"SET", b"k" * size, bytes(range(256)) * (size // 256) + b"\r" * (size % 256)]
    data = module.join_words(words)
    expected = [("request", *words), ("request", b"PING"), ("rest", b"")]
    stream = data + module.join_words([b"PING"])
    cuts = [1, 2, 3, 14, size, size + 17, size + 31, len(data) - 2, len(data) - 1, len(data), len(data) + 1]
    for cut in cuts:
        assert requests(module, [stream[:cut], stream[cut:]]) == expected
    for step in (1460, 16384, 65536):
        assert requests(module, [stream[i : i + step] for i in range(0, len(stream), step)]) == expected


@both("hyper_proxy.protocol.redis.framing")
@pytest.mark.parametrize("data", MALFORMED, ids=repr)
def test_malformed_bytes_are_an_error_however_they_arrive(module: ModuleType, data: bytes) -> None:
    events = [("request", b"PING"), ("error", f"Protocol error: {MALFORMED[data]}")]
    for pieces in all_ways(b"*1\r\n$4\r\nPING\r\n" + data):
        assert requests(module, pieces) == events, pieces


@both("hyper_proxy.protocol.redis.framing")
def test_who_speaks_tls_is_told_and_does_not_wait(module: ModuleType) -> None:
    said = [("error", "Protocol error: TLS is not served: let the client connect without")]
    assert requests(module, whole(b"\x16\x03\x01\x02\x00\x01")) == said


@both("hyper_proxy.protocol.redis.framing")
def test_limits_are_exact(module: ModuleType) -> None:
    limits = {"max_arguments": 3, "max_bulk": 5, "max_line": 8}
    fits = [b"*3\r\n" + b"$5\r\n12345\r\n" * 3, b"12345678\n"]
    for data in fits:
        for pieces in (whole(data), bytewise(data)):
            assert requests(module, pieces, **limits)[-1] == ("rest", b"")
    exceeds = {
        b"*4\r\n": "invalid multibulk length: more than limits.max_arguments (3)",
        b"*1\r\n$6\r\n": "invalid bulk length: more than limits.max_value_bytes (5)",
        b"123456789\n": "too big inline request: more than limits.max_line_bytes (8)",
        b"123456789": "too big inline request: more than limits.max_line_bytes (8)",
    }
    for data, text in exceeds.items():
        for pieces in (whole(data), bytewise(data)):
            assert requests(module, pieces, **limits) == [("error", f"Protocol error: {text}")]


@both("hyper_proxy.protocol.redis.framing")
def test_a_request_of_100_000_words_is_found(module: ModuleType) -> None:
    words = [b"MGET", *(b"%d" % i for i in range(100_000))]
    data = module.join_words(words)
    assert requests(module, [data[: len(data) // 2], data[len(data) // 2 :]]) == [("request", *words), ("rest", b"")]


class Counted(bytearray):
    """Counts how often a byte is looked at."""

    looks = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("words", [[b"MGET", *[b"0123456789"] * 3000], [b"SET", b"k", b"v" * 30_000], [b"*" * 30_000]])
def test_a_look_begins_where_the_last_one_ended(words: list[bytes]) -> None:
    framing = plain("hyper_proxy.protocol.redis.framing")
    framer = framing.Framer(1 << 20, 1 << 29, 1 << 16)
    data = framing.join_words(words)
    rest = Counted()
    for position in range(len(data) - 1):
        rest.append(data[position])
        assert framer.scan(rest, 0) == -1
        assert len(rest) < framer.need <= len(data)
    rest += data[-1:]
    assert framer.scan(rest, 0) == len(data)
    assert rest.looks < 30 * len(data)


@both("hyper_proxy.protocol.redis.framing")
def test_nobody_looks_before_enough_bytes_are_there(module: ModuleType) -> None:
    stream = Requests(module)
    for byte in bytewise(module.join_words([b"SET", b"k", b"v" * 100_000])):
        stream.feed(byte)
    assert stream.events == [("request", b"SET", b"k", b"v" * 100_000)]
    assert stream.scans < 50
