"""Error texts: the server's own, byte for byte."""

from __future__ import annotations

import pytest

from hyper_proxy.protocol.redis import encode, wording
from hyper_proxy.protocol.redis.commands import COMMANDS, subcommands_of
from tests.protocol.raw import Raw

UNKNOWN = [
    [b"nothing"],
    [b"NoThing", b"a", b"b", b"c"],
    [b"nothing", b"x" * 200, b"b"],
    [b"nothing", b"c" * 50, b"d" * 60, b"e" * 60, b"f"],
    [b"nothing", b"c" * 127, b"d", b"e"],
    [b"x" * 200, b"a"],
    [b"no\r\nthing", b"a\r\nb"],
    [b"no\0thing", b"a\0b", b"c"],
    [b"nothing", b""],
    [b"nothing", b"\xff\xfe'\"\\"],
    [b"client|id"],
]


@pytest.mark.parametrize("argv", UNKNOWN)
def test_unknown_commands_are_quoted_as_the_server_quotes_them(server: Raw, argv: list[bytes]) -> None:
    assert encode.error(wording.unknown_command(argv)) == server.redis(*argv)


@pytest.mark.parametrize("argv", [[b"client", b"x" * 200], [b"CoNfig", b"a\0b"], [b"xgroup", b"a\r\nb", b"k"]])
def test_unknown_subcommands_too(server: Raw, argv: list[bytes]) -> None:
    assert encode.error(wording.unknown_subcommand(argv)) == server.redis(*argv)


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        (wording.SYNTAX, [b"auth a b c"]),
        (wording.NOT_AN_INTEGER, [b"select x"]),
        (wording.DB_RANGE, [b"select 9999"]),
        (wording.NO_PROTO, [b"hello 4"]),
        (wording.PROTO_NOT_AN_INTEGER, [b"hello x"]),
        (wording.WRONG_PASS, [b"auth a b"]),
        (wording.NO_PASSWORD_SET, [b"auth x"]),
        (wording.BAD_CURSOR, [b"scan x"]),
        (wording.CLUSTER_DISABLED, [b"readonly"]),
        (wording.CLUSTER_DISABLED, [b"cluster nodes"]),
        (wording.EXEC_WITHOUT_MULTI, [b"exec"]),
        (wording.DISCARD_WITHOUT_MULTI, [b"discard"]),
        (wording.NESTED_MULTI, [b"multi", b"multi"]),
        (wording.WATCH_INSIDE_MULTI, [b"multi", b"watch k"]),
        (wording.NOT_IN_MULTI, [b"multi", b"save"]),
        (wording.EXEC_ABORT, [b"multi", b"nothing", b"exec"]),
        (wording.NO_AUTH, [b"config set requirepass secret", b"reset", b"get k"]),
        (wording.HELLO_NO_AUTH, [b"config set requirepass secret", b"reset", b"hello 3"]),
    ],
)
def test_constant_texts_are_the_servers(server: Raw, text: bytes, requests: list[bytes]) -> None:
    replies = [server.redis(*request.split()) for request in requests]
    for undo in ([b"reset"], [b"auth", b"secret"], [b"config", b"set", b"requirepass", b""]):
        server.redis(*undo)
    assert replies[-1] == encode.error(text)


def test_a_name_with_a_space_is_refused_as_by_the_server(server: Raw) -> None:
    assert server.redis(b"client", b"setname", b"a b") == encode.error(wording.BAD_CLIENT_NAME)


def test_refusals_name_the_command_and_the_reason() -> None:
    assert wording.refused(COMMANDS[b"monitor"]) == (
        b"ERR 'monitor' is not served by this proxy: the traffic of several servers is not one stream"
    )
    assert wording.refused(subcommands_of(COMMANDS[b"cluster"])[b"slots"]) == wording.CLUSTER_DISABLED


def test_a_subcommand_is_allowed_by_two_words() -> None:
    assert wording.permission(subcommands_of(COMMANDS[b"script"])[b"flush"]) == "SCRIPT FLUSH"


def test_a_worded_error_carries_its_reply() -> None:
    error = wording.ErrorReply(b"ERR \xff\r\nx")
    assert error.reply == b"-ERR \xff  x\r\n"
