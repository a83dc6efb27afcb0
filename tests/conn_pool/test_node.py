"""Connecting: the greeting that a server must pass, names, unix sockets, passwords, deadlines."""

from __future__ import annotations

import socket
from pathlib import Path
from time import monotonic
from typing import Any

import gevent
import pytest
from gevent.event import Event

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Server, Timeout
from hyper_proxy.conn_pool.dns import Name
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.storage.redis import RedisGreeting
from tests.conn_pool.conftest import GREETING, node_for, until
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.servers import Running, redis_server


def failure(node: Node, greeting: RedisGreeting = GREETING) -> BackendError:
    """Of a connection that must not come about."""
    with pytest.raises(BackendError) as caught:
        node.connect(greeting)
    return caught.value


@pytest.mark.parametrize(
    ("behaviour", "kind", "says"),
    [
        ("silent", "timeout", "connected, but it did not answer within 150 ms"),
        ("half", "timeout", "connected, but it did not answer within 150 ms"),
        ("slow", "timeout", "connected, but it did not answer within 150 ms"),
        ("reset", "reset", "greeting failed: "),
        ("hangs_up", "protocol", "greeting failed: the server closed the connection"),
        ("garbage", "protocol", "greeting failed: no redis reply begins so"),
        ("too_much", "protocol", "more answers than it was asked for"),
        ("double", "protocol", "more answers than it was asked for"),
        ("endless", "protocol", "greeting failed: "),
    ],
)
def test_a_greeting_ends_within_its_deadline_and_says_what_is_wrong(behaviour: str, kind: str, says: str) -> None:
    with FakeServer(REDIS, behaviour) as fake:
        node = node_for(Server("127.0.0.1", fake.port, name="a"), timeout=Timeout(5000, 150, 5000))
        began = monotonic()
        error = failure(node)
        assert monotonic() - began < 2
        assert error.kind == kind
        assert says in str(error)
        assert f"instance 'user' node 'a (127.0.0.1:{fake.port})': " in str(error)


BANNERS = [b"+PONG\r\n", b"+OK\r\n", b"-ERR max clients\r\n", b"$3\r\nfoo\r\n", b"220 smtp\r\n", b"*2\r\n"]


@pytest.mark.parametrize("banner", BANNERS, ids=repr)
def test_a_server_that_speaks_first_is_refused(banner: bytes) -> None:
    with FakeServer(REDIS, banner=banner) as fake:
        kind = failure(node_for(Server("127.0.0.1", fake.port))).kind
        assert kind == ("timeout" if banner == b"*2\r\n" else "protocol")  # an array waits for its second element


def test_half_a_surplus_answer_is_noticed() -> None:
    """What is left over in the parser would be the beginning of the first client's reply."""

    class Chatty:
        garbage = surplus = b""
        greetings: frozenset[bytes] = frozenset()
        read = REDIS.read

        def answer(self, request: list[bytes]) -> bytes:
            surplus = b"$5\r\nhe" if request[0] == b"ECHO" else b""
            return REDIS.answer(request) + surplus

    with FakeServer(Chatty()) as fake:
        assert failure(node_for(Server("127.0.0.1", fake.port))).kind == "protocol"


def test_a_wrong_echo_is_noticed() -> None:
    class Liar:
        garbage = surplus = b""
        greetings: frozenset[bytes] = frozenset()
        read = REDIS.read

        def answer(self, request: list[bytes]) -> bytes:
            return b"$3\r\nfoo\r\n" if request[0] == b"ECHO" else REDIS.answer(request)

    with FakeServer(Liar()) as fake:
        assert "did not echo" in str(failure(node_for(Server("127.0.0.1", fake.port))))


def test_a_wrong_password_is_named_and_makes_no_storm(own: Any) -> None:
    server: Running = own(redis_server("--requirepass", "secret"))
    node = node_for(Server("127.0.0.1", server.port, name="a"))
    wrong = RedisGreeting("", "guess", 0, 2)
    error = failure(node, wrong)
    assert "login failed: the server refuses `password` of the level: WRONGPASS " in str(error)
    assert error.kind == "protocol"
    assert node.admit(wrong) is not None
    right = RedisGreeting("", "secret", 0, 2)
    assert node.admit(right) is None  # others may still work
    node.connect(right).close()
    assert "the server wants a password, and the level has none (`password`): NOAUTH" in str(failure(node, GREETING))


def test_a_database_that_is_not_there_is_named(own: Any) -> None:
    server: Running = own(redis_server("--databases", "2"))
    node = node_for(Server("127.0.0.1", server.port))
    error = failure(node, RedisGreeting("", "", 5, 2, own_db=5))
    assert str(error).endswith(
        "greeting failed: the server does not take `db` of the level, SELECT 5: ERR DB index is out of range"
    )
    assert (error.kind, bool(node.told_down)) == ("protocol", True)
    node.connect(RedisGreeting("", "", 1, 3)).close()


def test_unix_sockets_connect(own: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "redis.sock")
    server: Running = own(redis_server(path=path))
    node = node_for(Server(path=path))
    node.connect(GREETING).close()
    server.kill()
    error = failure(node)
    assert error.kind == "refused"
    assert f"node 'unix:{path}': no connection: " in str(error)


class Book:
    """A resolver whose answers can be changed."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.asked = 0

    def __call__(self, host: str, port: None, family: int, kind: int) -> list[tuple[Any, ...]]:
        self.asked += 1
        if not self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, kind, 6, "", (answer, 0)) for answer in self.answers]


def test_a_name_keeps_its_last_good_address_while_it_is_asked_again() -> None:
    book = Book("127.0.0.1")
    name = Name("db.example", 0.0, book)
    assert name.resolve(1) == ("127.0.0.1",)
    book.answers = ()
    assert [name.resolve(1) for _ in range(5)] == [("127.0.0.1",)] * 5
    book.answers = ("127.0.0.2", "127.0.0.2", "127.0.0.3")
    until(lambda: name.resolve(1) == ("127.0.0.2", "127.0.0.3"), "the new address is found")


def test_a_name_is_asked_again_only_after_its_ttl_or_a_failure() -> None:
    book = Book("127.0.0.1")
    name = Name("db.example", 1000.0, book)
    for _ in range(5):
        name.resolve(1)
    assert book.asked == 1
    name.doubt()
    name.resolve(1)
    until(lambda: book.asked == 2, "it is asked again")


def test_a_name_that_was_never_found_says_so_and_is_asked_again() -> None:
    book = Book()
    name = Name("db.example", 1000.0, book)
    for _ in range(2):
        with pytest.raises(OSError, match=r"the name 'db\.example' can't be resolved: Name or service not known"):
            name.resolve(1)
    book.answers = ("127.0.0.1",)
    assert name.resolve(1) == ("127.0.0.1",)


def test_a_name_that_hangs_costs_no_more_than_the_connect_deadline() -> None:
    name = Name("db.example", 1000.0, lambda *args: Event().wait(30) or [])
    with gevent.Timeout(5), pytest.raises(OSError, match="was not resolved within 50 ms"):
        name.resolve(0.05)


def test_a_server_that_moves_is_followed() -> None:
    """The old address refuses; the next connection asks for the name although its ttl is not over."""
    with FakeServer(REDIS) as fake:
        node = node_for(Server("db.example", fake.port))
        book = Book("127.0.0.9")
        node.name = Name("db.example", 1000.0, book)
        assert failure(node).kind == "refused"
        book.answers = ("127.0.0.1",)
        assert failure(node).kind == "refused"
        until(lambda: node.name.addresses == ("127.0.0.1",), "the new address is found")
        node.connect(GREETING).close()


def test_every_address_of_a_name_is_tried() -> None:
    with FakeServer(REDIS) as fake:
        node = node_for(Server("db.example", fake.port))
        node.name = Name("db.example", 1000.0, Book("127.0.0.9", "127.0.0.8", "127.0.0.1"))
        node.connect(GREETING).close()


def test_localhost_is_a_name() -> None:
    with FakeServer(REDIS) as fake:
        node_for(Server("localhost", fake.port)).connect(GREETING).close()
