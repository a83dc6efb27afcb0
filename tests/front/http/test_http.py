"""The HTTP front through a whole fleet, asked as its clients ask it: http.client, curl, and raw bytes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.front.http.web import CHUNKED, PUT, Web
from tests.protocol.raw import Raw


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


def test_the_two_forms_of_a_value_have_tags_of_their_own_and_a_write_takes_either(web: Web) -> None:
    """A browser that has one form, and asks with its tag for the other, was told that it has not changed."""
    web.ask("PUT", "/v1/web/a", b"1")
    plain = web.ask("GET", "/v1/web/a", accept="*/*")
    detailed = web.ask("GET", "/v1/web/a", accept="application/json", if_none_match=plain.headers["etag"])
    assert detailed.json["value"] == "1"
    tag = detailed.headers["etag"]
    assert web.ask("GET", "/v1/web/a", if_none_match=tag).body == b"1"
    same = web.ask("GET", "/v1/web/a", accept="application/json", if_none_match=tag)
    assert (same.status, same.headers["etag"]) == (304, tag)
    assert [one.headers["vary"] for one in (plain, detailed, same)] == ["Accept"] * 3
    assert web.ask("PUT", "/v1/web/a", b"1", if_match=tag).status == 204
    assert web.ask("DELETE", "/v1/web/a", if_match=plain.headers["etag"]).status == 204


def test_no_condition_is_passed_over(web: Web) -> None:
    web.ask("PUT", "/v1/web/a", b"1")
    assert web.ask("PUT", "/v1/web/a", b"2", if_match="").status == 412
    assert web.ask("GET", "/v1/web/a", if_match='"other"').status == 412
    assert web.ask("GET", "/v1/web/a", if_match="*").body == b"1"
    content = b'{"op": "append", "value": "x"}'
    for condition in ({"if_match": '"other"'}, {"if_none_match": "*"}):
        answer = web.ask("POST", "/v1/web/a", content, content_type="application/json", **condition)
        assert (answer.status, answer.code) == (400, "no_condition")
    assert web.redis.get("a") == b"1"


def test_a_part_of_a_value_is_not_taken_for_the_whole(web: Web) -> None:
    """curl --continue-at sends the rest alone."""
    web.ask("PUT", "/v1/web/a", b"0123")
    answer = web.ask("PUT", "/v1/web/a", b"45", content_range="bytes 4-5/6")
    assert (answer.status, answer.code) == (400, "no_parts")
    assert web.redis.get("a") == b"0123"


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
        {}, {"op": "x"}, {"op": {}}, {"op": "expire"}, {"op": "expire", "ttl": 1e11}, {"op": "expire", "ttl": -1},
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


def test_a_trailer_is_no_header_and_no_part_of_the_body(web: Web) -> None:
    value = b"x" * 50_000  # longer than a head may be
    raw = Raw(web.port)
    raw.sock.sendall(CHUNKED + b"C350\r\n" + value + b"\r\n0\r\nContent-Encoding: gzip\r\nIf-Match: no\r\n\r\n")
    assert raw.file.readline().startswith(b"HTTP/1.1 201 ")
    raw.close()
    assert web.redis.get("a") == value


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
