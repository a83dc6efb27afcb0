"""The command table: complete, decided, and true to a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hyper_proxy.protocol.redis import treatments
from hyper_proxy.protocol.redis.command import (
    ALL,
    ANY,
    BLOCK,
    LOCAL,
    REFUSED,
    SAME_SHARD,
    SCAN,
    SINGLE,
    SPLIT,
    SUBSCRIBE,
    Command,
)
from hyper_proxy.protocol.redis.commands import COMMANDS, FACTS, FACTS_FILE, VERSION, resolve, subcommands_of
from hyper_proxy.protocol.redis.local import LOCAL as HANDLERS
from hyper_proxy.protocol.redis.local_docs import DOCS_FILE
from hyper_proxy.protocol.redis.reducers import REDUCERS
from hyper_proxy.protocol.redis.wording import ErrorReply
from hyper_proxy.stats.classes import IDEMPOTENT, READ, WRITE
from tests.protocol.raw import Raw

ROOT = Path(__file__).resolve().parents[3]
ROWS = {row.name: row for command in COMMANDS.values() for row in (command, *subcommands_of(command).values())}


def rows(treatment: int) -> list[Command]:
    return [row for row in ROWS.values() if row.treatment == treatment]


def run(script: str, *words: str) -> str:
    command = [sys.executable, str(ROOT / "scripts" / script), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout


def test_every_command_is_decided_once_and_no_decision_is_stale() -> None:
    assert {name.decode() for name in ROWS} == set(treatments.DECISIONS)
    assert {name.decode() for name in ROWS} >= treatments.IDEMPOTENT_WRITES | treatments.DANGEROUS


def test_the_facts_are_those_of_a_server_of_that_version(server: Raw, tmp_path: Path) -> None:
    assert f"redis_version:{VERSION}".encode() in server.redis(b"info", b"server")
    run("gen_commands", "--out", str(tmp_path))
    for file in (FACTS_FILE, DOCS_FILE):
        assert json.loads((tmp_path / file.name).read_text()) == json.loads(file.read_text())


def test_rows_have_the_servers_arity_and_places() -> None:
    get, mset, blpop, client = (COMMANDS[name] for name in (b"get", b"mset", b"blpop", b"client"))
    assert (get.arity, get.first, get.last, get.step) == (2, 1, 1, 1)
    assert (mset.arity, mset.first, mset.last, mset.step) == (-3, 1, -1, 2)
    assert (blpop.arity, blpop.first, blpop.last, blpop.step) == (-3, 1, -2, 1)
    assert subcommands_of(client)[b"setname"].arity == 3
    assert subcommands_of(COMMANDS[b"object"])[b"freq"].first == 2


def test_a_single_key_is_at_a_fixed_place() -> None:
    for row in rows(SINGLE):
        assert row.first == row.last > 0, row.name
        assert row.find_keys is None, row.name


def test_what_must_stay_on_one_shard_or_is_split_has_keys() -> None:
    for row in rows(SAME_SHARD) + rows(SPLIT) + rows(BLOCK):
        assert row.first or row.find_keys is not None, row.name


def test_what_needs_no_shard_has_no_keys() -> None:
    for row in rows(ANY) + rows(LOCAL) + rows(SCAN):
        assert not row.first, row.name
        assert row.find_keys is None, row.name


def test_whoever_has_movable_keys_has_a_finder_unless_refused() -> None:
    movable = {row.name for row in ROWS.values() if "movablekeys" in row.flags}
    fixed_for_us = {b"sort_ro"}  # movable only by patterns, which name no certain key
    assert {row.name for row in ROWS.values() if row.find_keys is not None} == movable - fixed_for_us


def test_reducers_exist_for_all_that_is_sent_to_all() -> None:
    assert set(REDUCERS) == {row.reduce for row in rows(ALL)}
    assert {row.reduce for row in rows(SPLIT)} == {"sum", "all_ok", "by_position"}
    assert all(not row.reduce for row in ROWS.values() if row.treatment not in (ALL, SPLIT))


def test_reasons_are_given_exactly_by_what_is_refused() -> None:
    for row in ROWS.values():
        assert bool(row.why) == (row.treatment == REFUSED), row.name


def test_only_what_deletes_everything_or_reads_all_keys_is_dangerous() -> None:
    assert {row.name for row in ROWS.values() if row.dangerous} == {b"flushall", b"flushdb", b"keys"}


def test_every_local_command_has_a_handler_and_no_handler_is_idle() -> None:
    containers = {row.name for row in rows(LOCAL) if row.subcommands is not None and not row.accepts(1)}
    assert {row.name for row in rows(LOCAL)} - containers == set(HANDLERS)


def test_blocking_rows_are_those_that_servers_call_blocking() -> None:
    assert {row.name for row in ROWS.values() if "blocking" in row.flags} == {row.name for row in rows(BLOCK)}
    assert {row.name for row in rows(BLOCK) if row.blocks is not None} == {b"xread", b"xreadgroup"}


def test_listeners_are_the_six_of_publish_and_subscribe() -> None:
    assert {row.name for row in rows(SUBSCRIBE)} == {
        prefix + word for prefix in (b"", b"p", b"s") for word in (b"subscribe", b"unsubscribe")
    }


def test_classes_follow_the_servers_flags() -> None:
    for row in ROWS.values():
        assert (row.klass == READ) == ("readonly" in row.flags), row.name
        if "write" in row.flags:
            assert row.klass in (WRITE, IDEMPOTENT), row.name
    assert COMMANDS[b"set"].klass == IDEMPOTENT
    assert COMMANDS[b"incr"].klass == COMMANDS[b"eval"].klass == WRITE
    assert {row.name.decode() for row in ROWS.values() if row.klass == IDEMPOTENT} == treatments.IDEMPOTENT_WRITES


@pytest.mark.parametrize(
    "line",
    [
        "get", "get a b", "nothing", "nothing a b", "client", "client nothing", "client setname", "client setname a b",
        "GET", "object freq", "object", "CONFIG nothing x", "config get", "xinfo stream", "mget", "time now",
    ],
)
def test_a_wrong_request_is_refused_in_the_servers_words(server: Raw, line: str) -> None:
    argv = line.encode().split()
    expected = server.redis(*argv)
    with pytest.raises(ErrorReply) as error:
        resolve(argv)
    assert error.value.reply == expected


def test_a_right_request_finds_its_row_down_to_the_subcommand() -> None:
    assert resolve([b"GeT", b"k"]) is COMMANDS[b"get"]
    assert resolve([b"CLIENT", b"SetName", b"x"]).name == b"client|setname"
    assert resolve([b"client", b"setinfo", b"lib-name", b"x"]).name == b"client|setinfo"
    assert resolve([b"command"]).name == b"command"
    assert FACTS["command"].arity == -1


def test_the_support_table_in_the_documentation_is_in_step() -> None:
    assert run("gen_redis_docs", "--print") == (ROOT / "docs" / "redis-commands.md").read_text("utf-8"), (
        "run scripts/gen_redis_docs"
    )
