"""HELLO and AUTH, read as a server reads them."""

from __future__ import annotations

import pytest

from hyper_proxy.protocol.redis import handshake
from hyper_proxy.protocol.redis.handshake import Hello
from hyper_proxy.protocol.redis.wording import ErrorReply
from tests.protocol.raw import Raw
from tests.protocol.redis.talker import Talker


@pytest.mark.parametrize(
    ("line", "hello"),
    [
        ("hello", Hello(0, None, None)),
        ("hello 2", Hello(2, None, None)),
        ("hello 3 auth bob secret", Hello(3, ("bob", b"secret"), None)),
        ("HELLO 3 SETNAME me AUTH bob secret", Hello(3, ("bob", b"secret"), b"me")),
        ("hello 2 setname a setname b", Hello(2, None, b"b")),
    ],
)
def test_hello_is_read(line: str, hello: Hello) -> None:
    assert handshake.parse_hello(line.encode().split()) == hello


@pytest.mark.parametrize(
    "argv",
    [
        [b"hello", b"1"],
        [b"hello", b"4"],
        [b"hello", b"-2"],
        [b"hello", b"99999999999999999999"],
        [b"hello", b"abc"],
        [b"hello", b""],
        [b"hello", b"3", b"auth"],
        [b"hello", b"3", b"AUTH", b"bob"],
        [b"hello", b"3", b"setname"],
        [b"hello", b"3", b"setname", b"a b"],
        [b"hello", b"3", b"nothing"],
    ],
)
def test_a_wrong_hello_gets_the_servers_words(server: Raw, argv: list[bytes]) -> None:
    with pytest.raises(ErrorReply) as error:
        handshake.parse_hello(argv)
    assert error.value.reply == server.redis(*argv)


def test_auth_is_read_with_and_without_a_user() -> None:
    assert handshake.parse_auth([b"auth", b"secret"]) == ("default", b"secret")
    assert handshake.parse_auth([b"auth", b"bob", b"secret"]) == ("bob", b"secret")
    assert handshake.parse_auth([b"auth", b"\xff", b"secret"])[0] == "\\xff"
    with pytest.raises(ErrorReply, match="syntax error"):
        handshake.parse_auth([b"auth", b"a", b"b", b"c"])


@pytest.mark.parametrize("resp", [2, 3])
def test_the_answer_to_hello_is_a_servers_but_for_the_id(server: Raw, resp: int) -> None:
    answer = server.redis(b"hello", str(resp).encode())
    connection_id = server.redis(b"client", b"id")
    assert handshake.hello_reply(Talker(resp=resp, id=int(connection_id[1:]))) == answer
