"""Key positions and what is done to the keys: the same as a real server's COMMAND GETKEYS and GETKEYSANDFLAGS."""

from __future__ import annotations

import pytest

from hyper_proxy.protocol.redis import keyspec
from hyper_proxy.protocol.redis.command import Command
from hyper_proxy.protocol.redis.commands import COMMANDS, keys_of, subcommands_of
from hyper_proxy.protocol.redis.local import LOCAL
from hyper_proxy.protocol.redis.wording import ErrorReply
from tests.protocol.raw import Raw
from tests.protocol.redis.requests import KEYED, KEYLESS, ODD
from tests.protocol.redis.talker import Talker


def answer(resp: int, argv: list[bytes]) -> bytes:
    handler = LOCAL[b"|".join(argv[:2])]
    try:
        return handler(Talker(resp=resp), argv)
    except ErrorReply as error:
        return error.reply


@pytest.mark.parametrize("word", [b"getkeys", b"getkeysandflags"])
@pytest.mark.parametrize("resp", [2, 3])
def test_keys_are_where_a_server_says_they_are(server: Raw, word: bytes, resp: int) -> None:
    server.redis(b"hello", str(resp).encode())
    wrong = []
    for request in KEYED + KEYLESS:
        argv = [b"command", word, *request]
        expected = server.redis(*argv)
        if len(request) > 1 and answer(resp, argv) != expected:
            wrong.append((b" ".join(request), answer(resp, argv), expected))
    assert not wrong


def test_every_command_with_keys_is_among_the_requests() -> None:
    asked = {request[0].lower() for request in KEYED} | {b"|".join(request[:2]).lower() for request in KEYED}
    rows = [row for command in COMMANDS.values() for row in (command, *subcommands_of(command).values())]
    not_keys = {b"spublish", b"ssubscribe", b"sunsubscribe"}  # names of channels, where a cluster would look for a slot
    with_keys = {row.name for row in rows if row.first or row.find_keys is not None} - not_keys
    assert with_keys - asked == set()


def test_upper_case_options_count() -> None:
    assert keyspec.streams(b"XREADGROUP GROUP g c BLOCK 5 STREAMS a b > >".split()) == [7, 8]
    assert keyspec.sort(b"SORT k STORE d".split()) == [1, 3]


@pytest.mark.parametrize(
    ("request_line", "blocks"),
    [
        (b"xread streams a 0", False),
        (b"xread block 0 streams a 0", True),
        (b"xread count 2 BLOCK 0 streams a 0", True),
        (b"xread streams block 0", False),
        (b"xreadgroup group block c streams a >", False),
        (b"xreadgroup group g c block 1 streams a >", True),
    ],
)
def test_only_the_option_block_makes_a_stream_read_wait(request_line: bytes, blocks: bool) -> None:
    argv = request_line.split()
    row = COMMANDS[argv[0]]
    assert row.blocks is keyspec.streams_block
    assert keyspec.streams_block(argv) is blocks


@pytest.mark.parametrize(
    ("request_line", "outside"),
    [
        (b"sort k", False),
        (b"sort k by nosort", False),
        (b"sort k get #", False),
        (b"sort k by w:*", True),
        (b"SORT_RO k GET # GET o:*->f", True),
        (b"sort k limit by w:* desc", False),
        (b"sort k store get*", False),
    ],
)
def test_sort_reads_other_keys_only_by_patterns_with_a_star(request_line: bytes, outside: bool) -> None:
    assert keyspec.sort_outside(request_line.split()) is outside


@pytest.mark.parametrize(("line", "positions"), ODD)
def test_malformed_requests_give_the_keys_that_are_certain(line: bytes, positions: list[int]) -> None:
    argv = line.split()
    assert keys_of(COMMANDS[argv[0]], argv) == positions


def test_an_empty_key_makes_migrate_look_for_the_word_keys() -> None:
    argv = [b"migrate", b"host", b"6379", b"", b"0", b"100", b"AUTH", b"keys", b"KEYS", b"x", b"y"]
    assert keyspec.migrate(argv) == [9, 10]


def test_keys_at_fixed_places() -> None:
    def keys(line: bytes) -> list[int]:
        argv = line.split()
        row: Command = COMMANDS[argv[0]]
        return keys_of(row, argv)

    assert keys(b"mset a 1 b 2 c 3") == [1, 3, 5]
    assert keys(b"blpop a b 0") == [1, 2]
    assert keys(b"bitop and d a b") == [2, 3, 4]
    assert keys(b"ping") == []
