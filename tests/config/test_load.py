"""A good file becomes one complete record; a bad one becomes all of its findings."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.common.errors import ConfigError
from hyper_proxy.config.load import MAX_FILE_BYTES, embedded_default, inspect, load, load_text
from hyper_proxy.config.model import (
    Backoff,
    Limits,
    Listen,
    Log,
    LushanFixed,
    LushanHashed,
    LushanPrefixed,
    Server,
    Table,
    Timeout,
)
from tests.config.texts import FULL, PLAIN, change, findings


def test_every_value_of_a_full_file_arrives() -> None:
    config = load_text(FULL, "/etc/hp/x.toml")
    assert (config.path, config.workers, config.worker_count) == ("/etc/hp/x.toml", 2, 2)
    assert (config.drain_timeout_s, config.prepare_timeout_s) == (2.5, 5.0)
    assert config.log == Log("/tmp/hyper_proxy.log", "debug", "text", "size", 64 * 1024**2, 3)
    user = config.instances[0]
    assert [listen.address for listen in user.listen] == ["0.0.0.0:6380", "[::1]:6381", "unix:/tmp/user.sock"]
    assert (sorted(user.allow), user.on_partial, user.dbs) == (["FLUSHALL", "KEYS"], "nil", 4)
    assert (user.username, user.password) == ("app", 'p"a[#s')
    assert user.limits == Limits(1024, 1024**2, 2000, 2 * 1024**2, 50, 100, 65536, 0.5, 1000)
    level = user.levels[0]
    assert (level.storage, level.hash, level.distribution, level.hash_tag) == ("redis", "md5", "ketama", "{}")
    assert level.servers == (
        Server("10.0.0.1", 6379, "", 1, "a"),
        Server("redis-2.example.com", 6379, "", 2, "b"),
        Server("fd00::3", 6379, "", 1, "c"),
        Server("", 0, "/run/d.sock", 1, "d"),
    )
    assert (level.connections, level.username, level.password, level.db) == (2, "proxy", "secret", 3)
    assert (level.max_pending_bytes, level.dns_ttl_s) == (1_000_000, 10.0)
    assert (level.timeout, level.backoff) == (Timeout(20, 100, 50), Backoff(10, 1000))
    assert config.instance("local") is config.instances[4]
    assert config.instance("nobody") is None
    assert [config.instances[i].levels[0].lushan_db for i in (1, 2, 3)] == [
        None,
        LushanHashed("crc32a", 8),
        LushanPrefixed(":", (("user", 1), ("a b", 2)), 0),
    ]
    assert config.instances[4].levels[0].servers == (Server(file="/etc/hp/data/local.db"),)
    profile = config.instances[5].levels[0]
    assert profile.table == Table("profile", "uid", "body", "user", expires="until")
    assert profile.where == (("deleted", 0),)
    assert profile.servers == (Server("10.0.0.7", 3306, name="r"),)
    assert profile.writers == (Server("10.0.0.8", 3306, name="w"),)
    assert (profile.database, profile.username, profile.password, profile.max_connections) == ("app", "reader", "x", 4)


def test_defaults_are_filled_in_by_protocol() -> None:
    redis = load_text(PLAIN, "x.toml").instances[0]
    text = change(change(PLAIN, '"redis"', '"memcache"'), '"redis"', '"memcache"')
    memcache = load_text(text, "x.toml").instances[0]
    assert redis.limits.max_key_bytes == redis.limits.max_value_bytes == 512 * 1024**2
    assert (memcache.limits.max_key_bytes, memcache.limits.max_value_bytes) == (250, 1024**2)
    assert redis.levels[0].timeout == Timeout(50, 200, 200)


def test_zero_workers_are_one_for_each_core() -> None:
    config = load_text(PLAIN, "x.toml")
    assert config.workers == 0
    assert config.worker_count == len(os.sched_getaffinity(0))


def test_a_fixed_lushan_database() -> None:
    text = change(FULL, 'lushan_db = { hash = "crc32a", count = 8 }', "lushan_db = 7")
    assert load_text(text, "x.toml").instances[2].levels[0].lushan_db == LushanFixed(7)


def test_without_default_a_prefix_rule_has_none() -> None:
    rule = load_text(change(FULL, "default = 0\n", ""), "x.toml").instances[3].levels[0].lushan_db
    assert rule == LushanPrefixed(":", (("user", 1), ("a b", 2)), None)


def test_a_configuration_never_changes_and_shows_no_password() -> None:
    config = load_text(FULL, "x.toml")
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.workers = 3  # type: ignore[misc]
    hash(config)
    assert "secret" not in repr(config)
    assert 'p"a[#s' not in repr(config)


def test_a_bad_password_is_not_repeated_in_the_finding() -> None:
    found = findings(change(FULL, '"secret"', '"top\\u0001secret"'))
    assert "HP106" in [finding.code for finding in found]
    assert "top" not in "".join(map(str, found))


def test_the_embedded_default_shares_one_file(tmp_path: Path) -> None:
    config = embedded_default(str(tmp_path))
    assert [(i.protocol, i.listen[0].address) for i in config.instances] == [
        ("redis", "127.0.0.1:6380"),
        ("memcache", "127.0.0.1:11311"),
        ("http", "127.0.0.1:8080"),
    ]
    assert {tuple(level.storage for level in i.levels) for i in config.instances} == {("local", "sqlite")}
    assert {i.levels[-1].servers for i in config.instances} == {(Server(file=str(tmp_path / "hyper_proxy.db")),)}
    assert config.path == ""
    assert config.admin == Listen("127.0.0.1", 22122)


@pytest.mark.parametrize("name", ['a"b', "a'b", "a\\b", "ä b"])
def test_the_embedded_default_takes_any_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    assert embedded_default(str(folder)).instances[0].levels[-1].servers[0].file == str(folder / "hyper_proxy.db")


def test_all_findings_come_at_once_in_the_order_of_the_file() -> None:
    text = change(change(change(FULL, "workers = 2", "worker = 2"), '"debug"', '"loud"'), '"md5"', '"md6"')
    with pytest.raises(ConfigError) as caught:
        load_text(text, "x.toml")
    assert [(finding.line, finding.code) for finding in caught.value.findings] == [
        (3, "HP104"),
        (12, "HP106"),
        (44, "HP106"),
    ]
    first = str(caught.value).splitlines()[0]
    assert first == "x.toml:3: error: HP104 proxy.worker: unknown key; did you mean 'workers'?"


def test_files_that_are_none(tmp_path: Path) -> None:
    cases = {
        tmp_path / "missing.toml": ("HP101", 0),
        tmp_path: ("HP101", 0),
        tmp_path / "binary.toml": ("HP102", 3),
        tmp_path / "huge.toml": ("HP101", 0),
        tmp_path / "nul\0.toml": ("HP101", 0),
        tmp_path / "pipe.toml": ("HP101", 0),
        Path("/dev/zero"): ("HP101", 0),
    }
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "binary.toml").write_bytes(b"# a\n\n\xff\xfe\n")
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    for path, (code, line) in cases.items():
        config, found = inspect(str(path))
        assert config is None
        assert [(finding.code, finding.line) for finding in found] == [(code, line)]
        with pytest.raises(ConfigError):
            load(str(path))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[proxy\n", 1),
        ("[proxy]\n\nworkers = \n", 3),
        ("[proxy]\nworkers = 1\nworkers = 2\n", 3),
        ("[proxy]\n[log]\n[proxy]\n", 3),
        ("# x\nlisten = [\n 'a',\n", 2),
        ("a = 1\nb = 'x\nc = 1\n", 2),
        ("\n\n\x01\n", 3),
    ],
)
def test_what_is_no_toml_is_a_finding_with_its_line(text: str, line: int) -> None:
    found = findings(text)
    assert [(finding.code, finding.line) for finding in found] == [("HP103", line)]


@pytest.mark.parametrize("text", ['a = 1\nb = "x\nc = 1\n', "a = 1\nb = 'x\nc = 1\n", 'a = 1\nb = ["x,\n]\n'])
def test_a_string_that_is_not_closed_is_called_so(text: str) -> None:
    (finding,) = findings(text)
    assert (finding.line, finding.message.endswith(": is the string closed on this line?")) == (2, True), finding


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a = 1\nb =\nc = 2\n", 2, "nothing stands behind '='"),
        ("a = 1\nb = # 2\n", 2, "nothing stands behind '='"),
        ("a = 1\nb =", 2, "nothing stands behind '='"),
        ("a = 1\nb = [", 2, "the list is not closed"),
        ("a = [\n'b',\n\n[log]\n", 4, "is the list above it closed?"),
        ("a = [\n'b',\nc = 1\n", 3, "is the list above it closed?"),
        ("a = [\n'b',\nc,\n]\n", 3, 'a string is written in "straight quotes"'),
        ("a = 1\nb = [ 'c'", 2, "the list is not closed"),
        ("a = [ 'b'\nc = 1\n", 2, "is the list above it closed?"),
        ("a = [ 'b'\n[[instance]]\n", 2, "is the list above it closed?"),
        ("a = [ 'b' 'c' ]\n", 1, "between two elements stands a comma"),
        ("a = [127.0.0.1:6379]\n", 1, 'a string is written in "straight quotes"'),
        ("a = 200ms\n", 1, 'a string is written in "straight quotes"'),
        ("a = True\n", 1, "it is true or false, in small letters"),
        ("a = on # or off\n", 1, "it is true or false, in small letters"),
        ("a = { b = 1\n", 1, "a table in braces begins and ends on one line"),
        ("a: 1\n", 1, "toml has key = value"),
        ("a = {{ b }}\n", 1, "is this a template that was not filled in?"),
        ("{% if b %}\n", 1, "is this a template that was not filled in?"),
        ("[log]\n[log]\n", 2, "[log] stands here a second time"),
        ("[instance]\n[instance]\n", 2, "what there may be several of begins with [[instance]] each time"),
        ("[instance]\n[[instance]]\n", 2, "what there may be several of begins with [[instance]] each time"),
        ("[[instance]]\n[instance.level]\n[instance.level]\n", 3, "begins with [[instance.level]] each time"),
    ],
)  # fmt: skip
def test_of_the_usual_slips_it_is_said_what_was_done(text: str, line: int, says: str) -> None:
    (finding,) = findings(text)
    assert (finding.line, says in finding.message) == (line, True), finding


@given(st.text() | st.text("[]{}=\"'#\n,.a1 ").map(lambda tail: PLAIN + tail))
def test_any_text_gives_findings_and_no_traceback(text: str) -> None:
    for finding in findings(text):
        assert 1 <= finding.line <= text.count("\n") + 2


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab_", max_size=3), inner, max_size=3),
    max_leaves=6,
)


def _toml(value: object) -> str:
    """A value of toml; None becomes a date."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(part)}' for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08X}" for char in value if not 0xD800 <= ord(char) < 0xE000) + '"'
    return "1979-05-27" if value is None else str(value).replace("e+", "e")


@given(st.sampled_from([line for line in FULL.splitlines() if " = " in line and "{ " not in line]), _ANY)
def test_any_value_of_any_key_gives_findings_and_no_traceback(line: str, value: object) -> None:
    key = line.partition(" = ")[0]
    text = FULL.replace(f"{line}\n", f"{key} = {_toml(value)}\n", 1)
    for finding in findings(text):
        assert finding.message
