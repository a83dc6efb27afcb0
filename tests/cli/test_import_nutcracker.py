"""hyper-proxy import nutcracker: every key stays where twemproxy put it, and nothing is lost without a word."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy import hashing
from hyper_proxy.cli.main import main
from hyper_proxy.cli.nutcracker_read import KEYS, read_pools
from hyper_proxy.cli.nutcracker_write import write_toml
from hyper_proxy.common.errors import ConfigError
from hyper_proxy.config.load import load, load_text
from hyper_proxy.config.model import Config

VECTORS = json.loads((Path(__file__).parents[1] / "hashing/vectors/twemproxy.json").read_text("utf-8"))["pools"]

ALL_KEYS = """\
first pool:                        # a name with a blank
  listen: 127.0.0.1:22122
  hash: murmur
  hash_tag: "{}"
  distribution: modula
  timeout: 400
  backlog: 1024
  client_connections: 500
  tcpkeepalive: true
  redis: true
  redis_auth: 'a"b\\x41'
  redis_db: 3
  preconnect: true
  auto_eject_hosts: true
  server_connections: 4
  server_retry_timeout: 2000
  server_failure_limit: 3
  servers:
   - 10.0.0.1:6379:1 one
   - 10.0.0.2:6379:3 two
   - /run/redis.sock:2 three
second:
  listen: /tmp/second.sock 0666
  servers:
   - 10.0.0.3:11211:1
   - memcache.example.com:11212:1
   - /run/memcached.sock:1
   - 10.0.0.4:011213:1
"""


def imported(text: str) -> Config:
    """The configuration that becomes of a YAML text."""
    return load_text(write_toml(read_pools(text, "n.yml"), "n.yml"), "n.toml")


def refused(text: str) -> list[tuple[str, int]]:
    """Code and line of all findings."""
    with pytest.raises(ConfigError) as caught:
        read_pools(text, "n.yml")
    return [(finding.code, finding.line) for finding in caught.value.findings]


def accepted_by_nutcracker(text: str, folder: Path) -> bool:
    """What twemproxy itself says of a file."""
    path = folder / "nutcracker.yml"
    path.write_text(text, "utf-8")
    return subprocess.run(["nutcracker", "-t", "-c", str(path)], capture_output=True, check=False).returncode == 0


def as_yaml(pool: dict[str, Any]) -> str:
    """A pool of the vectors as a twemproxy file."""
    servers = [f"{row['address']}:{row['weight']} {row['name'] or ''}".strip() for row in pool["servers"]]
    body = {"listen": "127.0.0.1:22121", "redis": pool["protocol"] == "redis", "servers": servers}
    body |= {key: pool[key] for key in ("hash", "distribution", "hash_tag") if pool[key]}
    return str(yaml.safe_dump({pool["name"]: body}))


@pytest.mark.parametrize("pool", VECTORS, ids=lambda pool: pool["name"])
def test_every_observed_pool_keeps_its_placement(pool: dict[str, Any]) -> None:
    level = imported(as_yaml(pool)).instances[0].levels[0]
    placement = hashing.build(level.hash, level.distribution, level.hash_tag, level.servers)
    for row in pool["vectors"]:
        key = bytes.fromhex(row["key_hex"])
        assert placement.locate(key, 0, len(key)) == row["server_index"]
    assert [hashing.ring_name(server) for server in level.servers] == [row["ring_name"] for row in pool["servers"]]


def test_all_keys_arrive() -> None:
    config = imported(ALL_KEYS)
    first, second = config.instances
    assert config.admin.address == "127.0.0.1:22222"
    assert (first.name, first.protocol, first.dbs, first.password) == ("first_pool", "redis", 1, 'a"b\\x41')
    assert [listen.address for listen in first.listen] == ["127.0.0.1:22122"]
    assert first.limits.max_clients == 500
    level = first.levels[0]
    assert (level.storage, level.hash, level.distribution, level.hash_tag) == ("redis", "murmur", "modula", "{}")
    assert (level.connections, level.password, level.db) == (4, 'a"b\\x41', 3)
    assert (level.timeout.connect_ms, level.timeout.read_ms, level.timeout.queue_ms) == (400, 400, 400)
    assert [(s.address, s.weight, s.name) for s in level.servers] == [
        ("10.0.0.1:6379", 1, "one"),
        ("10.0.0.2:6379", 3, "two"),
        ("unix:/run/redis.sock", 2, "three"),
    ]
    assert (second.name, second.protocol, second.listen[0].address) == ("second", "memcache", "unix:/tmp/second.sock")
    level = second.levels[0]
    assert (level.storage, level.hash, level.distribution, level.hash_tag) == ("memcache", "fnv1a_64", "ketama", "")
    assert [hashing.ring_name(server) for server in level.servers] == [
        "10.0.0.3",
        "10.0.0.4:011213",
        "/run/memcached.sock:",
        "memcache.example.com:11212",
    ]
    assert all(server.name for server in level.servers), "no warning stays for ever"


def test_whatever_changes_its_meaning_is_said() -> None:
    text = write_toml(read_pools(ALL_KEYS, "n.yml"), "n.yml")
    said = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    silent = {"listen", "hash", "hash_tag", "distribution", "redis", "redis_db", "servers", "reuse_port"}
    for key in set(KEYS) - silent:
        assert f"{key}:" in said or f"{key}," in said, key
    told = ("first_pool", "n.yml", "wait for ever", "umask 0111 makes it 0666", "SELECT", "the alias 10.0.0.4:011213")
    for words in told:
        assert words in said


@pytest.mark.parametrize(
    ("distribution", "order", "words"),
    [
        ("modula", "cab", "keys are dealt out"),
        ("ketama", "cab", "the same point in the ring"),
        ("random", "abc", ""),
    ],
)
def test_servers_stand_in_the_order_of_twemproxy(distribution: str, order: str, words: str) -> None:
    servers = "   - a:1:1 n10\n   - b:1:1 n9x\n   - c:1:1 n9\n"
    pool = f"a:\n  listen: 127.0.0.1:1\n  distribution: {distribution}\n  servers:\n"
    assert "".join(server.host for server in imported(pool + servers).instances[0].levels[0].servers) == order
    text = write_toml(read_pools(pool + servers, "n.yml"), "n.yml")
    assert ("by name: shorter names first" in text) is bool(words)
    assert words in text


def test_a_weight_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'10\.0\.0\.1:11211' has no weight: host:port:weight"):
        imported("a:\n  listen: 127.0.0.1:1\n  servers:\n   - 10.0.0.1:11211\n")


def test_of_a_redis_that_can_not_be_read_its_password_is_not_blamed() -> None:
    text = "a:\n  listen: 127.0.0.1:1\n  redis: yess\n  redis_auth: x\n  servers:\n   - a:6379:1\n"
    assert refused(text) == [("HP106", 3)]


def test_the_product_has_its_other_name_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "n.yml"
    file.write_text(ALL_KEYS)
    assert main(["import", "twemproxy", str(file)]) == 0
    captured = capsys.readouterr()
    assert max(map(len, captured.out.splitlines())) <= 120
    assert "no alias" not in captured.err


def test_of_a_sorted_list_nothing_is_said() -> None:
    pool = "a:\n  listen: 127.0.0.1:1\n  distribution: modula\n  servers:\n   - a:1:1\n   - b:1:1\n   - a:10:1\n"
    assert "servers:" not in write_toml(read_pools(pool, "n.yml"), "n.yml")


def test_a_newline_in_a_name_does_not_leave_its_comment() -> None:
    text = '"x\\n[[instance]]":\n  listen: 127.0.0.1:22121\n  servers:\n   - 127.0.0.1:6379:1\n'
    assert [instance.name for instance in imported(text).instances] == ["x___instance__"]


def test_names_that_become_equal_are_kept_apart() -> None:
    pool = "{name}:\n  listen: 127.0.0.1:{port}\n  servers:\n   - 127.0.0.1:6379:1\n"
    text = "".join(pool.format(name=name, port=port) for name, port in (("a b", 1), ("a/b", 2), ("a_b", 3)))
    assert [instance.name for instance in imported(text).instances] == ["a_b", "a_b_2", "a_b_3"]


POOL = "a:\n  listen: 127.0.0.1:22121\n  {line}\n  servers:\n   - 127.0.0.1:6379:1\n"

LINES = (
    *("hash: md5", "hash: MD5", "hash: fnv1a64", "hash: crc32a", "distribution: random", "distribution: maglev"),
    *('hash_tag: "{}"', "hash_tag: {}", "hash_tag: $$", "hash_tag: abc", 'hash_tag: ""'),
    *("timeout: 0", "timeout: 400", "timeout: -1", "timeout: 4.5", "timeout: 400ms", "timeout: soon"),
    *("redis: true", "redis: 'true'", "redis: yes", "redis: True", "redis: 1", "backlog: 1024", "backlog: many"),
    *("server_connections: 1", "server_connections: 0", "server_connections: -2", "client_connections: 0"),
    *("preconnect: false", "preconnect: no", "tcpkeepalive: true", "auto_eject_hosts: true", "auto_eject_hosts: 0"),
    *("server_retry_timeout: 1", "server_failure_limit: 1", "server_failure_limit: x", "redis_db: 1", "redis_db: x"),
    *("redis_auth: x", "redis: true\n  redis_auth: x", "hash: md5\n  hash: md5", "mbuf: 512", "Timeout: 1", "foo: bar"),
    "listen: 127.0.0.1:1",
)


@pytest.mark.parametrize("line", LINES)
def test_a_pool_is_read_or_refused_as_by_twemproxy(line: str, tmp_path: Path) -> None:
    text = POOL.format(line=line)
    if accepted_by_nutcracker(text, tmp_path):
        assert imported(text).instances[0].name == "a"
    else:
        number = 4 if "\n" in line and "auth" not in line else 3
        assert [line for _, line in refused(text)] == [number]


SERVERS = (
    *("a:1:1", "a:1:1 b", "a:1", "a", "a:0:1", "a:65536:1", "a:x:1", "a:1:0", "a:1:-1", "a:1:x", "a:1:1 b c", "a:1:"),
    *("/a:1", "/a:1 b", "/a", "/a:0", "::1:6379:1", "a:11211:1", "a:011211:1"),
)


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_is_read_or_refused_as_by_twemproxy(server: str, tmp_path: Path) -> None:
    text = f'a:\n  listen: 127.0.0.1:22121\n  servers:\n   - localhost:1:1 x\n   - "{server}"\n'
    if accepted_by_nutcracker(text, tmp_path):
        assert len(imported(text).instances[0].levels[0].servers) == 2
    else:
        assert refused(text) == [("HP110", 5)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("HP107", 1)]),
        ("- a\n", [("HP107", 1)]),
        ("a: b: c\n", [("HP103", 1)]),
        ("a:\n  listen: [\n", [("HP103", 3)]),
        ("a: 1\n", [("HP105", 1)]),
        ("a:\n  hash: md5\n", [("HP107", 1), ("HP107", 1)]),
        ("a:\n  listen: 127.0.0.1:1\n  servers:\n", [("HP105", 3)]),
        ("a:\n  listen: 127.0.0.1\n  servers:\n   - [a]\n", [("HP106", 2), ("HP105", 4)]),
        ("a:\n  listen: /x 7777\n  servers:\n   - a:1:1\n", [("HP106", 2)]),
        ("a:\n  listen: a:1\n  servers:\n   - a:1:1 x\n   - b:1:1 x\n", [("HP203", 5)]),
        ("a:\n  listen: a:1\n  servers:\n   - a:1:1\n   - a:1:1\n", [("HP203", 5)]),
        (POOL.format(line="backlog: 1") + POOL.format(line="backlog: 1"), [("HP201", 6)]),
        (POOL.format(line="backlog: 1") + POOL.format(line="backlog: 1").replace("a:", "b:", 1), [("HP202", 7)]),
    ],
)
def test_every_fault_of_a_file_has_its_line(text: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    assert refused(text) == expected
    assert not accepted_by_nutcracker(text, tmp_path)


def test_a_key_of_later_versions_is_read() -> None:
    assert imported(POOL.format(line="reuse_port: true")).instances[0].listen[0].port == 22121


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_password_arrives_as_it_is(password: str) -> None:
    body = {"listen": "127.0.0.1:22121", "redis": True, "redis_auth": password, "servers": ["a:1:1"]}
    text = yaml.safe_dump({"a": body}, default_style='"', allow_unicode=True).replace('!!bool "true"', "true")
    assert imported(text).instances[0].password == password


def test_the_command_writes_a_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "n.yml", tmp_path / "hyper_proxy.toml"
    source.write_text(ALL_KEYS)
    assert main(["import", "nutcracker", str(source)]) == 0
    shown = capsys.readouterr().out
    assert main(["import", "nutcracker", str(source), "-o", str(target)]) == 0
    assert target.read_text() == shown
    assert [instance.name for instance in load(str(target)).instances] == ["first_pool", "second"]
    assert main(["import", "nutcracker", str(source), "-o", str(target)]) == 71
    assert "is there already; --force overwrites it" in capsys.readouterr().err
    target.write_text("old")
    assert main(["import", "nutcracker", str(source), "-o", str(target), "--force"]) == 0
    assert target.read_text() == shown
    assert main(["import", "nutcracker", str(tmp_path / "missing.yml")]) == 78
    assert "HP101 cannot be read" in capsys.readouterr().err


def test_what_cannot_be_kept_is_refused_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "n.yml"
    source.write_text('a:\n  listen: 127.0.0.1:22121\n  redis: true\n  redis_auth: "a\\x01"\n  servers:\n   - a:1:1\n')
    assert main(["import", "nutcracker", str(source)]) == 78
    said = capsys.readouterr()
    assert said.out == ""
    assert "HP106 instance[0].password" in said.err
    assert f"{source}:1: error: HP207" in said.err


def test_the_sidecars_place_is_shown() -> None:
    text = write_toml(read_pools(POOL.format(line="redis: true"), "n.yml"), "n.yml")
    assert '#[admin]\n#listen = "127.0.0.1:22122"\n' in text
    assert "[admin]\nlisten" in write_toml(read_pools(ALL_KEYS, "n.yml"), "n.yml")
