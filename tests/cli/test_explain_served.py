"""What `explain` says is served, what it says is not, and in which words; every command can be asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyper_proxy.config.load import load_text
from hyper_proxy.explain import explain
from hyper_proxy.protocol.redis import explain as redis_explain
from hyper_proxy.protocol.redis import treat
from hyper_proxy.protocol.redis.commands import COMMANDS
from hyper_proxy.protocol.table import PROTOCOLS
from tests.cli.explained import CONFIG, ask

SERVED = [
    ("user", "ZRANGE {42} 0 -1", 1),
    ("user", "ECHO x", 0),
    ("user", "MULTI", 0),
    ("user", "SELECT 15", 0),
    ("user", "WATCH {42}a {42}b", 1),
    ("user", "BLPOP {42}a {42}b 0", 1),
    ("user", "XREAD STREAMS {42}s 0", 1),
    ("user", "SUBSCRIBE channel", 0),
    ("user", "SCAN 4 COUNT 10", 1),
    ("user", "EVAL script 0", 1),
    ("user", "EVAL script 2 {42}a {42}b", 1),
    ("user", "DBSIZE", 3),
    ("user", "FLUSHDB", 3),
    ("user", "RENAME {42}a {42}b", 1),
    ("drawn", "GET a", 1),
    ("drawn", "MGET a b", 0),
    ("drawn", "RENAME a b", 0),
    ("file", "MGET a b", 0),
    ("file", "PING", 0),
    ("page", "set a 0 0 1000", 1),
    ("page", "delete a noreply", 1),
    ("page", "mg YQ== b v", 1),
    ("page", "stats", 3),
    ("page", "version", 0),
    ("feed", "get user:1", 1),
    ("feed", "stats", 0),
    ("flushed", "flush_all", 2),
    ("flushed", "cache_memlimit 64", 2),
    ("filepage", "get a b", 0),
    ("filepage", "set a 0 0 1", 0),
]


@pytest.mark.parametrize(("instance", "request_", "requests"), SERVED)
def test_what_is_served(
    instance: str, request_: str, requests: int, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(file, capsys, instance, *request_.split())
    assert answer["served"], answer["error"]
    assert len(answer["requests"]) == requests


NOT_SERVED = [
    ("user", "FLUSHALL", "ERR FLUSHALL would also empty databases that are not this instance's"),
    ("user", "KEYS *", "ERR 'KEYS' is not allowed by instance 'user'"),
    ("user", "CLIENT LIST", "ERR 'client|list' is not served by this proxy: clients are spread"),
    ("user", "RENAME {1}a {42}b", "CROSSSLOT "),
    ("user", "WATCH {1}a {42}b", "CROSSSLOT "),
    ("user", "SORT list BY w_*", "CROSSSLOT SORT "),
    ("user", "SCAN x", "ERR invalid cursor"),
    ("user", "SELECT 16", "ERR DB index is out of range"),
    ("user", "SELECT x", "ERR value is not an integer"),
    ("file", "LPUSH a b", "ERR 'lpush' is not served by an instance whose storage is sqlite"),
    ("file", "MULTI", "ERR 'multi' is not served"),
    ("file", "SELECT 1", "ERR DB index is out of range"),
    ("table", "LPUSH a b", "ERR 'lpush' is not served by an instance whose storage is mysql"),
    ("table", "SELECT 1", "ERR DB index is out of range"),
    ("page", "flush_all", "CLIENT_ERROR flush_all not allowed"),
    ("page", "cache_memlimit 64", "CLIENT_ERROR cache_memlimit is not served: the instance's `allow`"),
    ("page", "slabs", "CLIENT_ERROR slabs is not served: it acts on one server"),
    ("page", "set a x 0 1", "CLIENT_ERROR bad command line format"),
    ("page", "set a 0 0 2000000", "SERVER_ERROR object too large for cache"),
    ("page", f"get {'k' * 251}", "CLIENT_ERROR bad command line format"),
    ("page", "mg a q q", "CLIENT_ERROR duplicate flag"),
    ("page", "stats reset", "CLIENT_ERROR stats reset"),
    ("page", "stats noreply", "ERROR"),
    ("page", "verbosity noreply", "CLIENT_ERROR bad command line format"),
    ("flushed", "cache_memlimit noreply", "ERROR"),
    ("flushed", "flush_all noreply noreply", "CLIENT_ERROR invalid exptime argument"),
    ("web", "GET _mget", "405 no_such_method"),
    ("web", "PUT /v1/web/_mget", "405 no_such_method"),
    ("web", f"MGET a {'k' * 101}", "400 key_too_long"),
    ("web", "MGET" + " k" * 17, "400 too_many_keys"),
    ("feed", "get other:1", "CLIENT_ERROR no lushan database is configured"),
    ("feed", "gets user:1", "CLIENT_ERROR gets is not served: Lushan has no cas; use get"),
    ("feed", "delete user:1", "CLIENT_ERROR delete is not served: Lushan serves get only"),
    ("filepage", "me a", "CLIENT_ERROR 'me' is not served by an instance whose storage is sqlite"),
]


@pytest.mark.parametrize(("instance", "request_", "error"), NOT_SERVED)
def test_what_is_not_served_says_what_the_client_reads(
    instance: str, request_: str, error: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(file, capsys, instance, *request_.split())
    assert answer["error"].startswith(error)
    assert not answer["served"]
    assert not answer["requests"]


@pytest.mark.parametrize(
    ("words", "error"),
    [(("GET", ""), "404 no_key"), (("MGET", "a", ""), "400 bad_keys"), (("MGET", "a\udcff"), "400 bad_keys")],
)
def test_what_is_no_key_of_http(
    words: tuple[str, ...], error: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(file, capsys, "web", *words)
    assert (answer["served"], answer["error"]) == (False, error)


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("flush_all noreply", ["flush_all"]),
        ("flush_all 010 noreply", ["flush_all", "10"]),
        ("flush_all -1", ["flush_all", "-1"]),
        ("cache_memlimit 64 noreply", ["cache_memlimit", "64"]),
        ("stats items", ["stats", "items"]),
    ],
)
def test_servers_are_asked_as_the_front_asks_them(
    line: str, sent: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(file, capsys, "flushed", *line.split())
    assert [request["words"] for request in answer["requests"]] == [sent] * 2
    assert answer["way"].endswith("no answer is waited for" if "noreply" in line else "the replies become one")


def test_every_protocol_and_treatment_is_explained() -> None:
    config = load_text(CONFIG, "x.toml")
    assert {instance.protocol for instance in config.instances} == PROTOCOLS.keys()
    assert redis_explain.TREATMENTS.keys() == treat.TREATMENTS.keys() == redis_explain.NAMES.keys()


@pytest.mark.parametrize("instance", ["user", "drawn", "file"])
def test_every_redis_command_can_be_asked_about(instance: str) -> None:
    config = load_text(CONFIG, "x.toml")
    for name, row in COMMANDS.items():
        words = [name, *[b"1"] * (abs(row.arity) - 1)]
        if row.subcommands is None:
            assert explain(config, instance, words).outcome.way


def test_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*unused: object, **also: object) -> None:
        raise AssertionError("explain opened a socket")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    config = load_text(CONFIG, "x.toml")
    for instance, request, _ in SERVED:
        explain(config, instance, request.encode().split())
    assert not Path("/var/lib/x.db").exists()
