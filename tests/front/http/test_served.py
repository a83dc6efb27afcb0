"""HTTP clients are served as all others are: access and slow log, keys, limits, counters, pipelines, reload, drain."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from hyper_proxy.common.keyname import digest
from tests.front.http.web import CHUNKED, PUT, Web
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for
from tests.protocol.raw import Raw

LOGGED = '\n[log]\nformat = "json"\naccess_sample = 1.0\n'
GET = b"GET /v1/web/%b HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A fleet that logs each request."""
    with ExitStack() as stack:
        yield Web(stack, tmp_path_factory.mktemp("web"), LOGGED)


def records(web: Web, sock: socket.socket, count: int) -> list[dict[str, object]]:
    """Those of this client, as they stand in the log, as soon as there are so many."""
    return records_of(web.fleet, sock, count)


def records_of(fleet: Fleet, sock: socket.socket, count: int) -> list[dict[str, object]]:
    """The same of any fleet."""
    client = "{}:{}".format(*sock.getsockname())

    def found() -> list[dict[str, object]]:
        rows = [json.loads(line) for line in fleet.read_log().splitlines() if '"request.sampled"' in line]
        return [row for row in rows if row["client"] == client]

    wait_for(lambda: len(found()) >= count, f"{count} records")
    rows = found()
    assert len(rows) == count
    return rows


def test_the_access_log_has_a_record_of_each_request(web: Web) -> None:
    web.connection.close()  # the next one is another client
    web.ask("PUT", "/v1/web/melon", b"x" * 1000)
    web.ask("GET", "/v1/web/melon")
    web.post("/v1/web/_mget", keys=["melon", "kiwi"])
    web.ask("DELETE", "/v1/web/melon")
    put, get, mget, delete = records(web, web.connection.sock, 4)
    assert [row["command"] for row in (put, get, mget, delete)] == ["PUT", "GET", "MGET", "DELETE"]
    assert [row["keys"] for row in (put, get, mget, delete)] == [1, 1, 2, 1]
    assert {row["key"] for row in (put, get, mget, delete)} == {digest(b"melon")}
    assert {row["error"] for row in (put, get, mget, delete)} == {""}
    assert {row["requests"] for row in (put, get, mget, delete)} == {1}
    assert int(str(put["bytes_in"])) > 1000 and int(str(get["bytes_out"])) > 1000
    for row in (put, get):
        phases = [int(str(row[f"{name}_us"])) for name in ("parse", "queue", "connect", "storage", "merge", "write")]
        assert phases[3] > 0, "sqlite was asked"
        assert int(str(row["total_us"])) - 6 <= sum(phases) <= int(str(row["total_us"]))


def test_the_access_log_says_why_a_request_is_refused(web: Web) -> None:
    web.redis.set("text", "no number")
    web.connection.close()
    for asked in ("GET /v1/web/none", "GET /v1/web/" + "k" * 101, "PATCH /v1/web/a", "GET /"):
        method, path = asked.split()
        web.ask(method, path)
    web.post("/v1/web/text", op="incr")
    web.post("/v1/web/_mget", keys=["k"] * 101 + ["l" * 101])
    rows = records(web, web.connection.sock, 6)
    assert [(row["command"], row["error"]) for row in rows] == [
        ("GET", "no_such_key"), ("GET", "max_key_bytes"), ("PATCH", "no_such_method"), ("GET", "no_such_path"),
        ("POST", "not_a_number"), ("MGET", "max_key_bytes"),
    ]  # fmt: skip
    assert rows[0]["key"] == digest(b"none") and rows[4]["key"] == digest(b"text")
    raw = Raw(web.port)
    raw.sock.sendall(b"NONSENSE\r\n\r\n")
    assert b"malformed" in raw.file.read()
    (row,) = records(web, raw.sock, 1)
    raw.close()
    assert (row["command"], row["error"], row["bytes_in"]) == ("", "malformed", 12)


def test_a_body_counts_with_all_its_pieces(web: Web) -> None:
    raw = Raw(web.port)
    body = b"".join(b"%x\r\n%b\r\n" % (9000, b"\n\r\n" * 3000) for _ in range(10)) + b"0\r\n\r\n"
    whole = CHUNKED + body
    for start in range(0, len(whole), 7001):
        raw.sock.sendall(whole[start : start + 7001])
    assert raw.file.readline().startswith(b"HTTP/1.1 201 ")
    (put,) = records(web, raw.sock, 1)
    raw.close()
    assert (put["command"], put["bytes_in"], put["key"]) == ("PUT", len(CHUNKED + body), digest(b"a"))
    assert web.redis.get("a") == b"\n\r\n" * 30_000
    web.redis.delete("a")


def test_a_request_may_come_in_any_pieces(web: Web) -> None:
    """One that ends does not take bytes of the next one along, wherever the pieces end."""
    chunked = b"PUT /v1/web/p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = (
        b"\r\n" + chunked + b"4\r\na\n\r\n\r\n1;x=y\r\nb\r\n0\r\nTrailer: \r\n\r\n" + GET % b"p"
        + b"PUT /v1/web/q HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n\n\r\n\r\n\r\n" + GET % b"q" + GET % b"p"
    )  # fmt: skip
    wanted = None
    for size in (len(data), 1, 2, 3, 5, 7, 11):
        raw = Raw(web.port)
        for start in range(0, len(data), size):
            raw.sock.sendall(data[start : start + size])
        raw.sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answers = raw.file.read().split(b"HTTP/1.1 ")[1:]
        raw.close()
        found = [(answer[:2], answer.partition(b"\r\n\r\n")[2]) for answer in answers]
        assert [status for status, _ in found[:5]] == [b"20"] * 5
        assert [body for _, body in found[:5]] == [b"", b"a\n\r\nb", b"", b"\n\r\n\r\n", b"a\n\r\nb"]
        assert wanted in (None, found)
        wanted = found
    web.redis.delete("p", "q")


def test_requests_of_one_read_are_one_record_and_answered_in_order(web: Web) -> None:
    web.redis.mset({"a": "1", "b": "2"})
    raw = Raw(web.port)
    raw.sock.sendall(GET % b"a" + GET % b"none" + GET % b"b" + b"GET / HTTP/1.0\r\n\r\n" + GET % b"a")
    answers = raw.file.read().split(b"HTTP/1.1 ")[1:]
    (row,) = records(web, raw.sock, 1)
    raw.close()
    assert [answer[:3] for answer in answers] == [b"200", b"404", b"200", b"404"]
    assert [b"Connection: close" in answer for answer in answers] == [False, False, False, True]
    assert (row["requests"], row["key"], row["error"]) == (4, digest(b"a"), "no_such_key")


def test_leave_to_send_a_body_comes_behind_the_answers_before(web: Web) -> None:
    web.redis.set("a", "1")
    raw = Raw(web.port)
    waiting = PUT + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    raw.sock.sendall(GET % b"a" + waiting)
    response = [raw.file.readline() for _ in range(7)]
    assert response[0].startswith(b"HTTP/1.1 200 ") and response[6] == b"\r\n"
    assert raw.file.read(1) == b"1"
    assert raw.file.read(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    for byte in (b"a", b"b", b"c"):
        raw.sock.sendall(byte)
    assert raw.file.readline().startswith(b"HTTP/1.1 204 "), "it is said once"
    raw.sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
    raw.file.read()
    raw.sock.close()
    raw = Raw(web.port)
    raw.sock.sendall(waiting + b"abc" + b"GET / HTTP/1.0\r\n\r\n")
    assert raw.file.readline().startswith(b"HTTP/1.1 204 "), "the body is there: nobody waits"
    raw.close()


def test_a_length_without_end_ends_the_connection_behind_the_answers_before(web: Web) -> None:
    web.redis.set("a", "1")
    raw = Raw(web.port)
    raw.sock.sendall(GET % b"a" + PUT + b"Content-Length: %b\r\n\r\n" % (b"0" * 3000) + GET % b"a")
    answers = raw.file.read().split(b"HTTP/1.1 ")[1:]
    raw.close()
    assert [answer[:3] for answer in answers] == [b"200", b"400"]
    assert b'"malformed"' in answers[1]


def test_clients_go_on_over_a_reload_to_another_kind_of_storage(tmp_path: Path) -> None:
    with ExitStack() as stack:
        port, server = free_port(), redis_server()
        stack.callback(server.stop)
        levels = [sqlite_level(), f'[[instance.level]]\nstorage = "redis"\nservers = ["{server.address}"]']
        head = f'[proxy]\nworkers = 1\n[[instance]]\nname = "web"\nprotocol = "http"\nlisten = ["127.0.0.1:{port}"]\n'
        fleet = stack.enter_context(Fleet(head + levels[0], tmp_path))
        raw = Raw(port)
        for number in range(4):
            raw.sock.sendall(PUT + b"Content-Length: 1\r\n\r\n%d" % number + GET % b"a")
            response = [raw.file.readline() for _ in range(10)]
            assert response[0].startswith(b"HTTP/1.1 20"), response
            while response[-1] != b"\r\n":
                response.append(raw.file.readline())
            assert raw.file.read(1) == b"%d" % number
            fleet.write(head + levels[(number + 1) % 2])
            assert fleet.reload().accepted
        raw.close()
        with redis.Redis(port=server.port) as storage:
            assert storage.get("a") == b"3"


def test_hot_and_large_keys_are_seen(web: Web) -> None:
    web.redis.set("large", b"v" * 50_000)
    for _ in range(400):
        web.ask("GET", "/v1/web/large")
    wait_for(lambda: [digest(b"large"), 50_000] in web.fleet.stats()["instances"]["web"]["big_keys"], "it is large")
    hot = dict(web.fleet.stats()["instances"]["web"]["hot_keys"])
    assert hot[digest(b"large")] > 100


def test_a_request_beyond_its_limit_ends_the_connection(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = Web(stack, tmp_path, limits='max_request_bytes = "64KB"')
        raw = Raw(web.port)
        raw.sock.sendall(CHUNKED + b"11170\r\n" + b"x" * 70_000 + b"\r\n")
        answer = raw.file.read()
        raw.close()
        assert answer.startswith(b"HTTP/1.1 413 ") and b"Connection: close" in answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_too_large"
        assert web.fleet.stats()["instances"]["web"]["errors"] == {"client": 1}


def test_who_is_one_too_many_is_told_in_http(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = Web(stack, tmp_path, limits="max_clients = 1", workers=1)
        assert web.ask("GET", "/v1/web/a").status == 404
        raw = Raw(web.port)
        answer = raw.file.read()
        raw.close()
        assert answer.startswith(b"HTTP/1.1 503 ") and b"Connection: close" in answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_many_clients"


def test_slow_requests_are_kept_with_their_phases(tmp_path: Path) -> None:
    with ExitStack() as stack:
        web = Web(stack, tmp_path, "\n[log]\nslow_ms = 1\n")
        keys = [f"slow{number}" for number in range(100)]
        web.redis.mset(dict.fromkeys(keys, b"x" * 90_000))
        assert web.post("/v1/web/_mget", keys=keys).status == 200  # 9 MB of JSON take their time
        rows = json.loads(web.fleet.http("GET", "/slowlog")[1])["slowlog"]
        (row,) = [row for row in rows if row["command"] == "MGET"]
        assert (row["instance"], row["keys"], row["key"], row["error"]) == ("web", 100, digest(b"slow0"), "")
        assert row["bytes_out"] > 9_000_000
        assert row["storage_us"] > 0 and row["parse_us"] > 0 and row["total_us"] >= 1000
        assert web.fleet.stats()["instances"]["web"]["slow"] >= 1


def test_a_drain_lets_responses_be_whole_and_ends_between_two(tmp_path: Path) -> None:
    """Clients ask as fast as they can while the fleet ends: each response is whole, and then there is none."""
    with ExitStack() as stack:
        web = Web(stack, tmp_path)
        web.ask("PUT", "/v1/web/a", b"x" * 90_000)
        asked, broken = [0] * 4, []
        running = threading.Barrier(5)

        def keep_asking(number: int) -> None:
            raw = Raw(web.port)
            while True:
                try:
                    raw.sock.sendall(GET % b"a")
                    head = raw.file.readline()
                except (BrokenPipeError, ConnectionResetError):
                    break
                if not head:
                    break
                while raw.file.readline() not in (b"\r\n", b""):
                    pass
                if raw.file.read(90_000) != b"x" * 90_000:
                    broken.append(number)
                asked[number] += 1
                if asked[number] == 5:
                    running.wait(20)
            raw.close()

        threads = [threading.Thread(target=keep_asking, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        running.wait(20)
        assert web.fleet.stop() == 0
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert not broken
        assert all(count >= 5 for count in asked)


def test_the_server_that_answered_or_failed_is_named(tmp_path: Path) -> None:
    with ExitStack() as stack:
        port, server = free_port(), redis_server()
        stack.callback(server.stop)
        text = f"""[proxy]
workers = 1
[[instance]]
name = "web"
protocol = "http"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["{server.address} one"]
  timeout = {{ connect_ms = 500, read_ms = 500 }}
"""
        fleet = stack.enter_context(Fleet(text + LOGGED, tmp_path))
        raw = Raw(port)
        raw.sock.sendall(GET % b"a")
        assert raw.file.readline().startswith(b"HTTP/1.1 404 ")
        (row,) = records_of(fleet, raw.sock, 1)
        assert (row["node"], row["error"]) == ("one", "no_such_key")
        server.kill()
        raw.sock.sendall(GET % b"a")
        found = records_of(fleet, raw.sock, 2)[1]
        raw.close()
        assert (found["node"], found["command"], found["key"]) == ("one", "GET", digest(b"a"))
        assert found["error"] in ("refused", "reset")
