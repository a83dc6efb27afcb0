"""Encoded replies: byte for byte, and as redis-py reads them."""

from __future__ import annotations

import socket

import pytest
from redis import ResponseError
from redis.connection import Connection

from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis.encode import Simple, Verbatim
from tests.protocol.raw import Raw

NESTED = {"a": [1, None, b"\x00\r\n", 2.5, True], "b": {"c": {b"x", b"y"}}, "d": Simple("word"), "e": Verbatim("text")}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (encode.simple("OK"), b"+OK\r\n"),
        (encode.simple(b"two\r\nlines"), b"+two  lines\r\n"),
        (encode.error("ERR no\nline"), b"-ERR no line\r\n"),
        (encode.error(b"ERR \xff"), b"-ERR \xff\r\n"),
        (encode.integer(-5), b":-5\r\n"),
        (encode.bulk(b""), b"$0\r\n\r\n"),
        (encode.bulk("é"), b"$2\r\n\xc3\xa9\r\n"),
        (encode.null(2), b"$-1\r\n"),
        (encode.null(3), b"_\r\n"),
        (encode.array([]), b"*0\r\n"),
        (encode.array([b":1\r\n", b"+a\r\n"]), b"*2\r\n:1\r\n+a\r\n"),
        (encode.mapping([(b"+a\r\n", b":1\r\n")], 2), b"*2\r\n+a\r\n:1\r\n"),
        (encode.mapping([(b"+a\r\n", b":1\r\n")], 3), b"%1\r\n+a\r\n:1\r\n"),
        (encode.unordered([b":1\r\n"], 2), b"*1\r\n:1\r\n"),
        (encode.unordered([b":1\r\n"], 3), b"~1\r\n:1\r\n"),
        (encode.push([b":1\r\n"], 2), b"*1\r\n:1\r\n"),
        (encode.push([b":1\r\n"], 3), b">1\r\n:1\r\n"),
        (encode.boolean(True, 2), b":1\r\n"),
        (encode.boolean(False, 2), b":0\r\n"),
        (encode.boolean(True, 3), b"#t\r\n"),
        (encode.boolean(False, 3), b"#f\r\n"),
        (encode.double(2.0, 3), b",2\r\n"),
        (encode.double(0.1, 3), b",0.1\r\n"),
        (encode.double(0.1, 2), b"$3\r\n0.1\r\n"),
        (encode.double(float("inf"), 3), b",inf\r\n"),
        (encode.double(float("-inf"), 3), b",-inf\r\n"),
        (encode.double(float("nan"), 3), b",nan\r\n"),
        (encode.double(1e300, 3), b",1e+300\r\n"),
        (encode.verbatim("text", 2), b"$4\r\ntext\r\n"),
        (encode.verbatim("text", 3), b"=8\r\ntxt:text\r\n"),
        (encode.value((1, "a"), 2), b"*2\r\n:1\r\n$1\r\na\r\n"),
        (encode.value({"b", "a"}, 3), b"~2\r\n$1\r\na\r\n$1\r\nb\r\n"),
    ],
)
def test_each_type_has_its_form(reply: bytes, expected: bytes) -> None:
    assert reply == expected


def test_what_fits_no_reply_is_refused() -> None:
    with pytest.raises(OverflowError):
        encode.integer(1 << 63)
    assert encode.integer(-(1 << 63)) == b":-9223372036854775808\r\n"
    with pytest.raises(TypeError, match="object has no form"):
        encode.value([object()], 2)


@pytest.mark.parametrize(
    ("resp", "expected"),
    [
        (2, [b"a", [1, None, b"\x00\r\n", b"2.5", 1], b"b", [b"c", [b"x", b"y"]], b"d", b"word", b"e", b"text"]),
        (3, {b"a": [1, None, b"\x00\r\n", 2.5, True], b"b": {b"c": [b"x", b"y"]}, b"d": b"word", b"e": b"text"}),
    ],
)
def test_redis_py_reads_a_nested_reply(resp: int, expected: object) -> None:
    near, far = socket.socketpair()
    with near, far:
        connection = Connection(protocol=resp)
        connection._sock = near  # type: ignore[assignment]
        connection._parser.on_connect(connection)
        far.sendall(encode.value(NESTED, resp) + encode.error("ERR wrong"))
        read = connection.read_response(disconnect_on_error=False)
        assert read == expected
        assert isinstance(connection._parser.read_response(), ResponseError)
        connection._parser.on_disconnect()


@pytest.mark.parametrize("resp", [2, 3])
def test_absence_looks_as_the_server_shows_it(server: Raw, resp: int) -> None:
    server.redis(b"hello", str(resp).encode())
    assert server.redis(b"get", b"nothing") == encode.null(resp)
    server.redis(b"hset", b"h", b"f", b"v")
    assert server.redis(b"hgetall", b"h") == encode.value({"f": "v"}, resp)
    server.redis(b"zadd", b"z", b"2.5", b"m")
    assert server.redis(b"zscore", b"z", b"m") == encode.double(2.5, resp)
    server.redis(b"sadd", b"s", b"m")
    assert server.redis(b"smembers", b"s") == encode.value({"m"}, resp)
