"""The fakes do what their behaviours say, seen by the real clients."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pymemcache
import pytest
import redis

from tests.kit.fakes import MEMCACHE, REDIS, FakeServer
from tests.kit.ports import accepts


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with FakeServer(REDIS) as server:
        yield server


@pytest.fixture
def client(fake: FakeServer) -> Iterator[redis.Redis]:
    options = {"socket_timeout": 0.3, "retry": None, "decode_responses": False, "protocol": 2}
    with redis.Redis(port=fake.port, **options) as one:  # type: ignore[arg-type]
        yield one


@pytest.mark.parametrize("behaviour", ["good", "slow", "bytewise"])
def test_right_replies_come_through(fake: FakeServer, client: redis.Redis, behaviour: str) -> None:
    fake.behave(behaviour)
    assert client.get("a") == b"value of a"


@pytest.mark.parametrize("behaviour", ["silent", "half"])
def test_missing_replies_time_out(fake: FakeServer, client: redis.Redis, behaviour: str) -> None:
    fake.behave("good")
    client.ping()
    fake.behave(behaviour)
    with pytest.raises(redis.TimeoutError):
        client.get("a")


@pytest.mark.parametrize("behaviour", ["reset", "hangs_up"])
def test_lost_connections_are_errors(fake: FakeServer, client: redis.Redis, behaviour: str) -> None:
    fake.behave("good")
    client.ping()
    fake.behave(behaviour)
    with pytest.raises(redis.ConnectionError):
        client.get("a")


def test_garbage_is_garbage(fake: FakeServer, client: redis.Redis) -> None:
    client.ping()
    fake.behave("garbage")
    with pytest.raises(redis.RedisError):
        client.get("a")


@pytest.mark.parametrize(
    ("behaviour", "replies"),
    [("too_much", b"$10\r\nvalue of a\r\n$21\r\nnobody asked for this\r\n"), ("closes", b"$10\r\nvalue of a\r\n")],
)
def test_raw_replies(fake: FakeServer, behaviour: str, replies: bytes) -> None:
    fake.behave(behaviour)
    with socket.create_connection(("127.0.0.1", fake.port), timeout=5) as sock, sock.makefile("rb") as stream:
        sock.sendall(b"GET a\r\n")
        sock.shutdown(socket.SHUT_WR)
        assert stream.read() == replies


def test_it_tells_what_it_was_asked(fake: FakeServer, client: redis.Redis) -> None:
    client.set("a", "1")
    assert fake.requests[-1] == [b"SET", b"a", b"1"]
    assert fake.accepted == 1


def test_memcache_speaks_too() -> None:
    with FakeServer(MEMCACHE) as server:
        client = pymemcache.Client(("127.0.0.1", server.port), timeout=1)
        assert client.set("a", "1", noreply=False)
        assert client.get_many(["a", "b"]) == {"a": b"value of a", "b": b"value of b"}
        client.close()


def test_a_stopped_fake_refuses(fake: FakeServer) -> None:
    fake.stop()
    assert not accepts(fake.port)
