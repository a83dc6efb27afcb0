"""What the HTTP front can't read, or is asked wrongly, is answered with the reason, and ends no more than it must."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.front.http.web import CHUNKED, PUT, Web
from tests.protocol.raw import Raw


def test_half_a_character_is_refused(web: Web) -> None:
    assert web.post("/v1/web/_mget", keys=["\ud800"]).code == "bad_keys"
    assert web.post("/v1/web/a", op="append", value="\ud800").code == "bad_operation"
    assert web.redis.get("a") is None


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (b"NONSENSE\r\n\r\n", 400, "malformed"),
        (b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "url_too_long"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 5000 + b"\r\n\r\n", 431, "head_too_large"),
        (PUT + b"".join(b"A%d: x\r\n" % n for n in range(200)) + b"\r\n", 431, "head_too_large"),
        (PUT + b"Content-Length: 100001\r\n\r\n", 413, "body_too_large"),
        (CHUNKED + b"186A1\r\n" + b"x" * 100001, 413, "body_too_large"),
        (PUT + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "malformed"),
        (PUT + b"Content-Length: 1\r\nContent-Encoding: br\r\n\r\nx", 415, "unknown_encoding"),
        (PUT + b"Content-Length: 1\r\nContent-Encoding: gzip\r\n\r\nx", 400, "bad_encoding"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 300_000, 431, "head_too_large"),
        (CHUNKED + b"1;" + b"x" * 300_000, 431, "head_too_large"),
        (CHUNKED + b"1\r\nx\r\n0\r\nA: " + b"x" * 300_000, 431, "head_too_large"),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 501, "no_upgrade"),
        (PUT + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 501, "unknown_encoding"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nHost: x y\r\n\r\n", 400, "bad_host"),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", 400, "bad_host"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_answered_and_ends_the_connection(
    web: Web, request_: bytes, status: int, code: str
) -> None:
    raw = Raw(web.port)
    raw.sock.sendall(b"GET /v1/web/before HTTP/1.1\r\nHost: x\r\n\r\n" + request_)
    replies = raw.file.read()
    raw.close()
    first, _, second = replies.partition(b"HTTP/1.1 404")[2].partition(b"HTTP/1.1 ")
    assert b"no_such_key" in first
    assert second.startswith(b"%d " % status) and b"Connection: close" in second
    assert json.loads(second.partition(b"\r\n\r\n")[2])["error"]["code"] == code


def test_a_bomb_of_zeros_is_not_unpacked(web: Web) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert web.ask("PUT", "/v1/web/a", bomb, content_encoding="gzip").code == "body_too_large"


def test_packed_pieces_in_a_row_are_refused_not_cut(web: Web) -> None:
    answer = web.ask("PUT", "/v1/web/a", gzip.compress(b"one") + gzip.compress(b"two"), content_encoding="gzip")
    assert (answer.status, answer.code) == (400, "bad_encoding")
    assert web.redis.get("a") is None


def test_what_is_asked_wrongly_leaves_the_connection_open(web: Web) -> None:
    sock = None
    for method, path, status in (
        ("GET", "/", 404), ("GET", "/v1/other/a", 404), ("GET", "/v1/web/", 404), ("PATCH", "/v1/web/a", 405),
        ("GET", "/v1/web/" + "k" * 101, 400), ("PUT", "/v1/web/a?ttl=0", 400),
        ("PUT", "/v1/web/a?ttl=1e300", 400), ("PUT", "/v1/web/a?ttl=nan", 400), ("PUT", "/v1/web/a?ttl=x", 400),
        ("PUT", "/v1/web/a?ttl=1_0", 400), ("PUT", "/v1/web/a?ttl=%205", 400), ("PUT", "/v1/web/a?ttl=1e999", 400),
        ("PUT", "/v1/web/a?flags=-1", 400), ("PUT", "/v1/web/a?flags=" + "1" * 3500, 400),
    ):  # fmt: skip
        answer = web.ask(method, path)
        assert (answer.status, path) == (status, path)
        assert answer.json["error"]["message"]
        sock = sock or web.connection.sock
        assert web.connection.sock is sock
    assert web.ask("GET", "/v1/web/_mget").json["error"]["message"] == "POST is possible here"


@pytest.mark.parametrize(
    ("method", "path", "name", "known"),
    [
        ("PUT", "/v1/web/g?tll=60", "tll", "known here: ttl, flags"),
        ("PUT", "/v1/web/g?ttl=60&Flags=1", "Flags", "known here: ttl, flags"),
        ("PUT", "/v1/web/g?ttl", "", ""),  # it is read: not a number
        ("GET", "/v1/web/g?ttl=60", "ttl", "none is known here"),
        ("DELETE", "/v1/web/g?x=", "x", "none is known here"),
        ("POST", "/v1/web/_mget?keys=a", "keys", "none is known here"),
        ("GET", "/v1/openapi.json?v=3", "v", "none is known here"),
        ("PUT", "/v1/web/g?" + "k" * 100 + "=1", "k" * 40, "known here: ttl, flags"),
    ],
)
def test_a_parameter_that_is_not_known_is_refused(web: Web, method: str, path: str, name: str, known: str) -> None:
    answer = web.ask(method, path, b"{}" if method == "POST" else None, **{"Content-Type": "application/json"})
    assert answer.status == 400
    if known:
        assert answer.code == "bad_query"
        assert answer.json["error"]["message"] == f"there is no parameter '{name}'; {known}"
    assert web.ask("GET", "/v1/web/g").status == 404


def test_a_parameter_of_two_values_is_refused(web: Web) -> None:
    for query in ("ttl=60&ttl=61", "ttl=60&flags=1&%74tl=60", "flags=&flags="):
        answer = web.ask("PUT", f"/v1/web/g?{query}")
        assert (answer.status, answer.code) == (400, "bad_query")
        assert answer.json["error"]["message"] == f"the parameter '{query[:query.index('=')]}' is given more than once"
    assert web.ask("GET", "/v1/web/g").status == 404
    assert web.ask("PUT", "/v1/web/g?ttl=60&&flags=1&").status == 201


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("g", b'{"op": "expire", "tll": 60}', "there is no field 'tll'; known here: op, ttl"),
        ("g", b'{"op": "append", "value": "x", "ttl": 60}', "there is no field 'ttl'; known here: op, value"),
        ("g", b'{"op": "incr", "value": 5}', "there is no field 'value'; known here: op, by"),
        ("g", b'{"op": "incr", "by": 1, "by": 5}', "the field 'by' is given more than once"),
        ("_mget", b'{"keys": ["g"], "default": "x"}', "there is no field 'default'; known here: keys"),
        ("_mget", b'{"keys": ["g"], "keys": []}', "the field 'keys' is given more than once"),
        ("g", b'{"op": "incr", "' + b"k" * 100 + b'": 1}', f"there is no field '{'k' * 40}'; known here: op, by"),
    ],
)
def test_a_field_that_is_not_known_or_of_two_values_is_refused(
    web: Web, path: str, body: bytes, message: str
) -> None:
    web.ask("PUT", "/v1/web/g?ttl=60", b"1")
    answer = web.ask("POST", f"/v1/web/{path}", body, **{"Content-Type": "application/json"})
    assert (answer.status, answer.json) == (400, {"error": {"code": "bad_field", "message": message}})
    assert web.ask("GET", "/v1/web/g").body == b"1"
    assert 0 < web.redis.ttl("g") <= 60
