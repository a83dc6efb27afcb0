"""hyper-proxy explain: its object, its lines, its exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyper_proxy.cli.main import main
from hyper_proxy.config.load import load_text
from hyper_proxy.explain import explain
from hyper_proxy.protocol.redis import explain as redis_explain
from hyper_proxy.protocol.redis import treat
from hyper_proxy.protocol.redis.commands import COMMANDS
from hyper_proxy.protocol.table import PROTOCOLS

CONFIG = """\
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:6380"]
allow = ["FLUSHALL", "FLUSHDB"]
  [[instance.level]]
  storage = "redis"
  hash_tag = "{}"
  db = 2
  servers = ["10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b", "10.0.0.3:6379:1 c"]
[[instance]]
name = "drawn"
protocol = "redis"
listen = ["127.0.0.1:6381"]
  [[instance.level]]
  storage = "redis"
  distribution = "random"
  servers = ["10.0.0.1:6379", "10.0.0.2:6379"]
[[instance]]
name = "file"
protocol = "redis"
listen = ["127.0.0.1:6382"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["/var/lib/x.db"]
[[instance]]
name = "page"
protocol = "memcache"
listen = ["127.0.0.1:11311"]
  [[instance.level]]
  storage = "memcache"
  servers = ["10.0.0.1:11211:1 a", "unix:/run/b.sock:1 b", "10.0.0.3:11211:1 c"]
[[instance]]
name = "feed"
protocol = "memcache"
listen = ["127.0.0.1:11312"]
  [[instance.level]]
  storage = "lushan"
  servers = ["10.0.0.1:9999:1 a", "10.0.0.2:9999:1 b"]
  lushan_db = { separator = ":", map = { user = 1, feed = 2 } }
[[instance]]
name = "flushed"
protocol = "memcache"
listen = ["127.0.0.1:11314"]
allow = ["flush_all"]
  [[instance.level]]
  storage = "memcache"
  servers = ["10.0.0.1:11211:1 a", "10.0.0.2:11211:1 b"]
[[instance]]
name = "filepage"
protocol = "memcache"
listen = ["127.0.0.1:11313"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["/var/lib/x.db"]
[[instance]]
name = "web"
protocol = "http"
listen = ["127.0.0.1:8080"]
limits = { max_key_bytes = 100, max_arguments = 16 }
  [[instance.level]]
  storage = "sqlite"
  servers = ["/var/lib/x.db"]
[[instance]]
name = "shelf"
protocol = "http"
listen = ["127.0.0.1:8081"]
  [[instance.level]]
  storage = "lushan"
  servers = ["10.0.0.1:9999:1 l"]
  lushan_db = { separator = ":", map = { user = 1 } }
  [[instance.level]]
  storage = "redis"
  servers = ["10.0.0.1:6379:1 above"]
  db = 3
  [[instance.level]]
  storage = "redis"
  servers = ["10.0.0.1:6379:1 below"]
  db = 4
[[instance]]
name = "table"
protocol = "redis"
listen = ["127.0.0.1:6383"]
  [[instance.level]]
  storage = "mysql"
  servers = ["10.0.0.1:3306 a", "10.0.0.2:3306 b", "10.0.0.3:3306 c"]
  username = "proxy"
  table = { name = "user.profile", key = "uid", value = "body", expires = "until" }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "x.toml"
    path.write_text(CONFIG)
    return str(path)


def ask(file: str, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["explain", "-c", file, "--json", *words]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_object_is_a_contract(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(file, capsys, "user", "GET", "user:{42}:x")
    assert answer == {
        "instance": "user",
        "protocol": "redis",
        "request": ["GET", "user:{42}:x"],
        "command": {
            "name": "get", "class": "read", "treatment": "single", "reduce": None, "needs_allow": None, "allowed": True,
        },
        "served": True,
        "error": None,
        "way": "the key is on one shard: the request goes there as it came",
        "keys": [{"key": "user:{42}:x", "digest": "fa4ec54b867ad84a:11", "levels": [{
            "level": 1, "storage": "redis", "distribution": "ketama", "hashed": "42", "hash": "fnv1a_64",
            "hash_value": 3031536163, "shard": 1, "node": "10.0.0.2:6379", "label": "b", "pool": None,
            "route": None, "db": 2, "key_sent": "user:{42}:x",
        }]}],
        "requests": [{"shard": 1, "node": "10.0.0.2:6379", "label": "b", "words": ["GET", "user:{42}:x"]}],
    }  # fmt: skip


def test_people_read_lines(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-c", file, "user", "SET", "user:{42}:x", "a b"]) == 0
    assert capsys.readouterr().out == (
        "user (redis): SET user:{42}:x 'a b'\n"
        "command: set, class idempotent, treatment single\n"
        "key 'user:{42}:x' (digest fa4ec54b867ad84a:11): fnv1a_64 of '42' is 3031536163, ketama gives shard 1, "
        "10.0.0.2:6379 (b), database 2\n"
        "way: the key is on one shard: the request goes there as it came\n"
        "  -> shard 1, 10.0.0.2:6379 (b): SET user:{42}:x 'a b'\n"
    )


def test_a_key_need_not_be_text(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(file, capsys, "page", "get", "k\udcff")
    assert answer["keys"][0]["key"] == "k\udcff"
    assert main(["explain", "-c", file, "page", "get", "k\udcff"]) == 0
    assert r"get 'k\xff'" in capsys.readouterr().out


def test_mset_is_split_with_its_values(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(file, capsys, "user", "MSET", "{1}x", "v1", "{42}y", "v2", "{1}z", "v3")
    assert [key["key"] for key in answer["keys"]] == ["{1}x", "{42}y", "{1}z"]
    assert [request["words"] for request in answer["requests"]] == [
        ["MSET", "{1}x", "v1", "{1}z", "v3"],
        ["MSET", "{42}y", "v2"],
    ]
    assert answer["command"]["reduce"] == "all_ok"


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


def test_lushan_keys_carry_the_number_of_their_database(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(file, capsys, "feed", "get", "user:1", "feed:2")
    levels = [key["levels"][0] for key in answer["keys"]]
    assert [(level["db"], level["key_sent"], level["hashed"]) for level in levels] == [
        (1, "1-user:1", "user:1"),
        (2, "2-feed:2", "feed:2"),
    ]
    assert [request["words"] for request in answer["requests"]] == [["get", "1-user:1"], ["get", "2-feed:2"]]


def test_each_level_tells_its_own_database(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(file, capsys, "shelf", "MGET", "user:1", "feed:1")
    levels = [[(level["db"], level["key_sent"]) for level in key["levels"]] for key in answer["keys"]]
    assert levels == [
        [(1, "1-user:1"), (3, "user:1"), (4, "user:1")],
        [(None, "feed:1"), (3, "feed:1"), (4, "feed:1")],  # Lushan has none for it, and is not asked
    ]


def test_an_sqlite_level_is_its_file(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (level,) = ask(file, capsys, "file", "GET", "a")["keys"][0]["levels"]
    assert (level["storage"], level["shard"], level["node"]) == ("sqlite", 0, "/var/lib/x.db")
    assert level["hash_value"] is level["distribution"] is None


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("GET", "/v1/web/greeting"), ["greeting"]),
        (("PUT", "/v1/web/a%20b/c?ttl=5"), ["a b/c"]),
        (("GET", "greeting"), ["greeting"]),
        (("DELETE", "other%20"), ["other%20"]),
        (("DELETE", "/v1/web//other"), ["/other"]),
        (("MGET", "a", "/v1/web/b", "c d"), ["a", "b", "c d"]),
    ],
)
def test_http_takes_the_path_or_the_key(
    words: tuple[str, ...], keys: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [key["key"] for key in ask(file, capsys, "web", *words)["keys"]] == keys


@pytest.mark.parametrize("words", [("GET", "/user:ann"), ("DELETE", "/"), ("MGET", "a", "/v2/web/b")])
def test_http_has_keys_at_one_path_alone(
    words: tuple[str, ...], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(file, capsys, "web", *words)
    assert (answer["served"], answer["error"], answer["keys"]) == (False, "404 no_such_path", [])
    assert answer["way"] == "nothing is asked: keys are at /v1/web/KEY"


def test_a_table_has_a_key_at_the_server_that_the_hash_chooses(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(file, capsys, "table", "SET", "a", "1")
    (level,) = answer["keys"][0]["levels"]
    assert (level["storage"], level["distribution"], level["hash"]) == ("mysql", "ketama", "fnv1a_64")
    (same,) = ask(file, capsys, "user", "SET", "a", "1")["keys"][0]["levels"]
    assert level["shard"] == same["shard"]
    assert level["node"] == f"10.0.0.{level['shard'] + 1}:3306"
    assert answer["way"] == "the request becomes statements on table user.profile at the servers of its keys"
    assert answer["requests"] == []


def test_chance_names_no_server(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (level,) = ask(file, capsys, "drawn", "GET", "a")["keys"][0]["levels"]
    assert level["shard"] is level["node"] is None


def test_allowances_are_shown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    flush, keys = (ask(file, capsys, "user", *words)["command"] for words in (["FLUSHALL"], ["KEYS", "*"]))
    assert (flush["needs_allow"], flush["allowed"]) == ("FLUSHALL", True)
    assert (keys["needs_allow"], keys["allowed"]) == ("KEYS", False)
    assert main(["explain", "-c", file, "page", "flush_all"]) == 0
    said = 'must be allowed by the instance (allow = ["FLUSH_ALL"]), and is not'
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["usr", "GET", "a"], "there is no instance 'usr'; did you mean 'user'?"),
        (["x", "GET", "a"], "the configuration has user, drawn, file, page, feed, flushed, filepage"),
        (["user"], "which command?"),
        (["user", "GTE", "a"], "unknown command 'GTE'; did you mean 'get'?"),
        (["user", "GET a"], "'GET a' is one word: write the request word by word"),
        (["user", "CLIENT", "X"], "unknown subcommand 'X'"),
        (["web", "GET", "/v1/wed/a"], "'wed' is another instance"),
        (["web", "GET", "/v1/web/"], "which key? /v1/web/KEY"),
        (["web", "POST", "/v1/web/_mget"], "its keys are in its body: ask for MGET KEY"),
        (["user", "GET"], "wrong number of arguments for 'get' command"),
        (["user", "MSET", "a", "1", "b"], "wrong number of arguments for 'mset' command"),
        (["page", "GET", "a"], "memcache has no command 'GET'; did you mean 'get'?"),
        (["page", "get"], "'get' takes 2 or more words"),
        (["page", "set", "a"], "'set' takes 5 to 6 words, itself included; 2 were given"),
        (["page", "get", "a b"], "'a b' is no word of a memcache line"),
    ],
)
def test_a_bad_question_is_wrong_usage(
    words: list[str], said: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "-c", file, *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert not captured.out


def test_a_faulty_configuration_is_78_with_its_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(CONFIG.replace("hash_tag", "hashtag").replace("db = 2", "db = -2"))
    assert main(["explain", "-c", str(path), "user", "GET", "a"]) == 78
    errors = [line.split(" ")[0:3] for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    assert errors == [[f"{path}:8:", "error:", "HP104"], [f"{path}:9:", "error:", "HP106"]]


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
