"""The HTTP front through a whole fleet, asked as its clients ask it: http.client, curl, and raw bytes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.protocol.raw import Raw

CONFIG = """[proxy]
workers = {workers}
drain_timeout_s = 1
[[instance]]
name = "web"
protocol = "http"
listen = ["127.0.0.1:{http}"]
  [instance.limits]
  max_value_bytes = 100000
  max_line_bytes = 4000
  max_key_bytes = 100
  {limits}
  [[instance.level]]
  storage = "sqlite"
  servers = ["keys.db"]
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{redis}"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["keys.db"]
"""

PUT = b"PUT /v1/web/a HTTP/1.1\r\nHost: x\r\n"
CHUNKED = PUT + b"Transfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as data."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json["error"]["code"])


class Web:
    """A fleet and one connection to its HTTP instance that stays open; a redis client of the same keys."""

    def __init__(self, stack: ExitStack, folder: Path, more: str = "", limits: str = "", workers: int = 2) -> None:
        """more: further lines of the configuration; limits: of its limits."""
        self.port, redis_port = free_port(), free_port()
        text = CONFIG.format(http=self.port, redis=redis_port, limits=limits, workers=workers) + more
        self.fleet = stack.enter_context(Fleet(text, folder))
        self.redis = stack.enter_context(redis.Redis(port=redis_port))
        self.connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        stack.callback(self.connection.close)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request; names of headers are written with _."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, named)
        return read(self.connection.getresponse())

    def post(self, path: str, **content: object) -> Answer:
        """A request of JSON."""
        return self.ask("POST", path, json.dumps(content).encode(), content_type="application/json")


def read(response: HTTPResponse) -> Answer:
    """All of it."""
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


@pytest.fixture(scope="module")
def _web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with ExitStack() as stack:
        yield Web(stack, tmp_path_factory.mktemp("web"))


@pytest.fixture
def web(_web: Web) -> Web:
    """Without keys."""
    for key in _web.redis.scan_iter():
        _web.redis.delete(key)
    return _web


def test_a_value_goes_in_and_comes_out(web: Web) -> None:
    assert web.ask("GET", "/v1/web/a").code == "no_such_key"
    stored = web.ask("PUT", "/v1/web/a", b"\x00\xff value")
    assert (stored.status, stored.body) == (201, b"")
    found = web.ask("GET", "/v1/web/a")
    assert (found.status, found.body) == (200, b"\x00\xff value")
    assert found.headers["etag"] == stored.headers["etag"]
    assert found.headers["content-type"] == "application/octet-stream"
    assert web.ask("PUT", "/v1/web/a", b"other").status == 204
    assert web.redis.get("a") == b"other"
    assert web.ask("DELETE", "/v1/web/a").status == 204
    assert web.ask("DELETE", "/v1/web/a").status == 404
    assert web.redis.exists("a") == 0


def test_any_bytes_can_be_a_key(web: Web) -> None:
    keys = {"%00%ff": b"\x00\xff", "a/b": b"a/b", "a%2Fb": b"a/b", "a+b%20c": b"a+b c", "%C3%A9": "é".encode()}
    for path, key in keys.items():
        web.ask("PUT", f"/v1/web/{path}", path.encode())
        assert web.redis.get(key) == path.encode()
        assert web.ask("GET", f"/v1/web/{path}").body == path.encode()


def test_a_value_as_json(web: Web) -> None:
    web.ask("PUT", "/v1/web/text?ttl=100&flags=7", "grüße".encode())
    web.redis.set("bytes", b"\xff")
    text = web.ask("GET", "/v1/web/text", accept="application/json").json
    assert (text["key"], text["value"], text["flags"]) == ("text", "grüße", 7)
    assert 90 < text["ttl"] <= 100 and text["version"] > 0
    assert web.ask("GET", "/v1/web/bytes", accept="application/json").json["value_base64"] == "/w=="
    assert web.redis.ttl("text") > 90


def test_conditions(web: Web) -> None:
    assert web.ask("PUT", "/v1/web/a", b"1", if_match="*").status == 412
    assert web.ask("PUT", "/v1/web/a", b"1", if_none_match="*").status == 201
    assert web.ask("PUT", "/v1/web/a", b"2", if_none_match="*").code == "precondition_failed"
    tag = web.ask("GET", "/v1/web/a").headers["etag"]
    same = web.ask("GET", "/v1/web/a", if_none_match=f'"x", W/{tag}')
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", tag)
    assert web.ask("PUT", "/v1/web/a", b"2", if_match=tag).status == 204
    assert web.ask("PUT", "/v1/web/a", b"3", if_match=tag).status == 412
    assert web.ask("DELETE", "/v1/web/a", if_match=tag).status == 412
    assert web.redis.get("a") == b"2"


def test_operations(web: Web) -> None:
    assert web.post("/v1/web/n", op="incr").json == {"value": 1}
    assert web.post("/v1/web/n", op="incr", by=-5).json == {"value": -4}
    assert web.post("/v1/web/t", op="append", value="ab").json == {"length": 2}
    assert web.post("/v1/web/t", op="incr").code == "not_a_number"
    assert web.post("/v1/web/t", op="expire", ttl=50).json == {"ttl": 50}
    assert 0 < web.redis.ttl("t") <= 50
    assert web.post("/v1/web/nothing", op="expire", ttl=50).status == 404
    assert web.post("/v1/web/n", op="incr", by=2.0).json == {"value": -2}
    wrong: list[dict[str, object]] = [
        {}, {"op": "x"}, {"op": {}}, {"op": "expire", "ttl": 1e11}, {"op": "expire", "ttl": -1},
        {"op": "incr", "by": "1"}, {"op": "incr", "by": 0.5}, {"op": "incr", "by": 2**63}, {"op": "append"},
    ]  # fmt: skip
    for content in wrong:
        assert (web.post("/v1/web/t", **content).status, content) == (400, content)


def test_several_keys_at_once(web: Web) -> None:
    web.redis.mset({"a": "1", "b": b"\xff"})
    answer = web.post("/v1/web/_mget", keys=["b", "nothing", "a", "a"])
    assert answer.json == {"values": {"b": {"value_base64": "/w=="}, "nothing": None, "a": {"value": "1"}}}
    assert web.post("/v1/web/_mget", keys=[1]).code == "bad_keys"
    assert web.ask("GET", "/v1/web/_mget").headers["allow"] == "POST"
    assert web.ask("POST", "/v1/web/_mget", b'{"keys": []}').code == "not_json"  # as a form of another page would


def test_an_address_may_be_asked_as_a_whole(web: Web) -> None:
    """As clients ask that take us for their proxy: curl -x."""
    web.redis.set("a b", "1")
    for origin in ("http://other.example:81", "HTTPS://[::1]", "http://x"):
        found = web.ask("GET", f"{origin}/v1/web/a%20b?")
        assert (found.status, found.body, origin) == (200, b"1", origin)
    assert web.ask("GET", "http://x").code == "no_such_path"
    assert web.ask("PUT", "http://x/v1/web/http://y/z", b"2").status == 201
    assert web.redis.get("http://y/z") == b"2"


@pytest.mark.parametrize("host", [b"", b"x", b"[::1]:80", b"a_b.example:8080", b"%41"])
def test_any_host_will_do(web: Web, host: bytes) -> None:
    raw = Raw(web.port)
    raw.sock.sendall(b"GET /v1/web/a HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
    assert raw.file.readline().startswith(b"HTTP/1.1 404 ")
    raw.close()


def test_a_value_does_not_grow_beyond_its_limit(web: Web) -> None:
    web.ask("PUT", "/v1/web/a?flags=3", b"x" * 99_990)
    assert web.post("/v1/web/a", op="append", value="y" * 10).json == {"length": 100_000}
    refused = web.post("/v1/web/a", op="append", value="y")
    assert (refused.status, refused.code) == (413, "value_too_large")
    assert "limits.max_value_bytes (100000)" in refused.json["error"]["message"]
    assert web.redis.get("a") == b"x" * 99_990 + b"y" * 10
    assert web.redis.append("a", "y") == 100_001, "another instance has its own limit"


def test_a_reload_changes_how_far_a_value_may_grow(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = Web(stack, tmp_path)
        web.ask("PUT", "/v1/web/a", b"x" * 100_000)
        assert web.post("/v1/web/a", op="append", value="y").code == "value_too_large"
        web.fleet.write(web.fleet.file.read_text().replace("max_value_bytes = 100000", "max_value_bytes = 100001"))
        assert web.fleet.reload().accepted
        assert web.post("/v1/web/a", op="append", value="y").json == {"length": 100_001}
        assert web.post("/v1/web/a", op="append", value="y").code == "value_too_large"


def test_half_a_character_is_refused(web: Web) -> None:
    assert web.post("/v1/web/_mget", keys=["\ud800"]).code == "bad_keys"
    assert web.post("/v1/web/a", op="append", value="\ud800").code == "bad_operation"
    assert web.redis.get("a") is None


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_packing_both_ways(web: Web, packing: str) -> None:
    value = b"value " * 2000
    packed = gzip.compress(value) if packing == "gzip" else zlib.compress(value)
    assert web.ask("PUT", "/v1/web/a", packed, content_encoding=packing).status == 201
    assert web.redis.get("a") == value
    found = web.ask("GET", "/v1/web/a", accept_encoding=f"br, {packing};q=0.5")
    assert found.headers["content-encoding"] == packing
    assert (gzip.decompress if packing == "gzip" else zlib.decompress)(found.body) == value
    assert "content-encoding" not in web.ask("GET", "/v1/web/a", accept_encoding=f"{packing};q=0").headers


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


def test_a_trailer_is_no_header_and_no_part_of_the_body(web: Web) -> None:
    value = b"x" * 50_000  # longer than a head may be
    raw = Raw(web.port)
    raw.sock.sendall(CHUNKED + b"C350\r\n" + value + b"\r\n0\r\nContent-Encoding: gzip\r\nIf-Match: no\r\n\r\n")
    assert raw.file.readline().startswith(b"HTTP/1.1 201 ")
    raw.close()
    assert web.redis.get("a") == value


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


def test_requests_behind_each_other_are_answered_in_order(web: Web) -> None:
    raw = Raw(web.port)
    puts = [b"PUT /v1/web/k%d HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n%d" % (n, n) for n in range(9)]
    gets = [b"GET /v1/web/k%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(9)]
    raw.sock.sendall(b"".join(puts + gets) + b"GET / HTTP/1.0\r\n\r\n")
    replies = raw.file.read().split(b"HTTP/1.1 ")[1:]
    raw.close()
    assert [reply[:3] for reply in replies] == [b"201"] * 9 + [b"200"] * 9 + [b"404"]
    assert [reply.partition(b"\r\n\r\n")[2] for reply in replies[9:18]] == [b"%d" % n for n in range(9)]


def test_a_client_that_waits_for_leave_to_send_gets_it(web: Web) -> None:
    raw = Raw(web.port)
    raw.sock.sendall(PUT + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert raw.file.readline() + raw.file.readline() == b"HTTP/1.1 100 Continue\r\n\r\n"
    raw.sock.sendall(b"abc")
    assert raw.file.readline().startswith(b"HTTP/1.1 201 ")
    raw.close()


def test_curl_and_head(web: Web) -> None:
    url = f"http://127.0.0.1:{web.port}/v1/web/curl"
    done = subprocess.run(["curl", "-sS", "-T", "-", url], input=b"by curl", check=True, capture_output=True)
    assert done.stdout == b""
    assert subprocess.run(["curl", "-sS", url], check=True, capture_output=True).stdout == b"by curl"
    head = web.ask("HEAD", "/v1/web/curl")
    assert (head.status, head.headers["content-length"], head.body) == (200, "7", b"")


def test_the_description_names_every_path_and_method(web: Web) -> None:
    described = web.ask("GET", "/v1/openapi.json").json
    assert described["openapi"].startswith("3.1")
    assert set(described["paths"]) == {"/v1/web/_mget", "/v1/web/{key}"}
    assert set(described["paths"]["/v1/web/{key}"]) == {"parameters", "get", "head", "put", "post", "delete"}


def test_requests_are_counted_by_class(web: Web) -> None:
    before = web.fleet.stats()["instances"]["web"]["requests"]
    web.ask("GET", "/v1/web/a")
    web.ask("PUT", "/v1/web/a", b"1")
    web.post("/v1/web/a", op="incr")
    after = web.fleet.stats()["instances"]["web"]["requests"]
    assert {klass: after[klass] - before[klass] for klass in after} == {
        "read": 1, "idempotent": 1, "write": 1, "admin": 0,
    }  # fmt: skip


def test_explain_knows_its_requests(web: Web) -> None:
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "explain", "-c", str(web.fleet.file), "--json", "web"]
    said = json.loads(subprocess.run([*command, "GET", "a"], capture_output=True, text=True, check=True).stdout)
    assert (said["protocol"], said["command"]["class"]) == ("http", "read")
    assert [level["storage"] for level in said["keys"][0]["levels"]] == ["sqlite"]
    refused = subprocess.run([*command, "FETCH", "a"], capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "none of GET" in refused.stderr


def test_a_drain_breaks_no_response(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = Web(stack, tmp_path)
        web.ask("PUT", "/v1/web/a", b"1")
        assert web.fleet.stop() == 0
        assert web.connection.sock.recv(100) == b""


def test_a_wish_for_another_protocol_is_passed_over(web: Web) -> None:
    """As curl --http2 and clients of Java ask at first."""
    web.redis.set("a", "1")
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAA\r\n\r\n"
    raw = Raw(web.port)
    raw.sock.sendall((b"GET /v1/web/a HTTP/1.1\r\nHost: x\r\n" + wish) * 2 + b"GET /v1/web/a HTTP/1.0\r\n\r\n")
    replies = raw.file.read().split(b"HTTP/1.1 ")[1:]
    raw.close()
    assert [(reply[:3], reply.partition(b"\r\n\r\n")[2]) for reply in replies] == [(b"200", b"1")] * 3
    assert web.ask("PUT", "/v1/web/a", b"2", connection="Upgrade", upgrade="h2c").code == "no_upgrade"
    web.connection.close()
    assert web.redis.get("a") == b"1"


def test_many_wishes_in_one_read_are_all_passed_over(web: Web) -> None:
    raw = Raw(web.port)
    wish = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n"
    raw.sock.sendall(wish * 4000 + b"GET / HTTP/1.0\r\n\r\n")
    assert raw.file.read().count(b"HTTP/1.1 404") == 4001
    raw.close()
