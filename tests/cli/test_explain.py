"""hyper-proxy explain: its object, its lines, its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyper_proxy.cli.main import main
from tests.cli.explained import CONFIG, ask


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
