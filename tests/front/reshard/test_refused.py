"""What can't be served while keys move, alone: all else goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis

from hyper_proxy.cli.resharding import server as reshard_server
from hyper_proxy.cli.resharding.plan import WatchedFile
from hyper_proxy.cli.resharding.server import Connection, Refused
from hyper_proxy.config.model import Level, Server
from tests.front.reshard.conftest import Moving
from tests.front.reshard.test_moving import say
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for

BIG = 1_500_000
LARGE = 6_000_000  # more than may be on its way when the new server ends the connection
HUGE = 60_000_000  # takes longer than a quarter of the read deadline
SORT = ("SORT", "set", "BY", "weight*", "GET", "name*")


class Exchange(Moving):
    """Server a is replaced by c: all keys move."""

    def listed(self, names: str) -> str:
        return super().listed({"ab": "a", "abc": "c"}[names])

    def kept_by_old(self) -> set[bytes]:
        """Its keys."""
        return set(self.to(self.servers[0]).keys())


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[Exchange]:
    with ExitStack() as stack:
        yield Exchange(stack, tmp_path, (), "")


def _sort(client: redis.Redis) -> None:
    connection = client.connection_pool.get_connection()
    for words in (SORT, (*SORT, "STORE", "to")):
        assert "does not name" in str(say(connection, *words))
    assert say(connection, "SORT", "set", "DESC") == [b"2", b"1"]
    assert say(connection, "MULTI") == b"OK"
    assert "does not name" in str(say(connection, *SORT))
    assert isinstance(say(connection, "EXEC"), redis.exceptions.ExecAbortError)


def _wait_in_vain(client: redis.Redis, new: redis.Redis) -> None:
    """BLPOP of a key that can't be moved gives its connection to the new server back."""
    connection = client.connection_pool.get_connection()
    assert say(connection, "BLPOP", "empty", "0.01") is None
    before = new.info("clients")["connected_clients"]
    for _ in range(20):
        assert say(connection, "BLPOP", "empty", "0.01") is None
        assert "was not sent" in str(say(connection, "BLPOP", "big", "0"))
    assert new.info("clients")["connected_clients"] <= before + 1


def _break_the_way(client: redis.Redis, large: list[str]) -> None:
    """Different keys, one after the other: for a moment nothing is moved, and what has been is served."""
    for key in large[:2]:
        with pytest.raises(redis.ResponseError, match="IOERR"):
            client.strlen(key)
    with client.pipeline(transaction=False) as pipeline:
        pipeline.strlen(large[2])
        pipeline.get("other")
        pipeline.get("key1")
        heard = pipeline.execute(raise_on_error=False)
    assert "IOERR" in str(heard[0]), heard
    assert "IOERR" in str(heard[1]) and "not tried again yet" in str(heard[1]), heard
    assert heard[2] == b"here"
    wait_for(lambda: _length(client, "other") == 1, "others are moved again")


def test_what_cannot_be_moved_fails_alone(exchange: Exchange) -> None:
    """A key too large for the new server, asked for without end; keys that a SORT does not name."""
    client = exchange.client()
    keys = [f"key{number}" for number in range(200)]
    client.mset(dict.fromkeys(keys, "here"))
    client.set("big", random.randbytes(BIG))  # not to be compressed
    client.mset({"weight1": 2, "weight2": 1, "name1": "one", "name2": "two"})
    client.sadd("set", 1, 2)
    assert client.execute_command(*SORT) == [b"two", b"one"]
    blob = random.randbytes(HUGE)
    large = [f"large{number}" for number in range(3)]
    exchange.to(exchange.servers[0]).mset(
        {**dict.fromkeys(large, blob[:LARGE]), "huge": blob, "left": "here", "other": 1}
    )
    new = exchange.to(exchange.new)
    new.config_set("proto-max-bulk-len", 1 << 20)
    exchange.begin()

    _sort(client)

    other = exchange.client().connection_pool.get_connection()
    for first in range(0, 200, 4):
        other.send_command("STRLEN", "big")
        with client.pipeline(transaction=False) as pipeline:
            pipeline.mget(keys[first : first + 2])
            pipeline.strlen("big")
            pipeline.get(keys[first + 2])
            pipeline.mget(keys[first + 3], "big")
            pipeline.mget(keys[: first + 2])
            heard = pipeline.execute(raise_on_error=False)
        assert [heard[0], heard[2], heard[4]] == [[b"here"] * 2, b"here", [b"here"] * (first + 2)], heard
        for error in (heard[1], heard[3]):
            assert isinstance(error, redis.ResponseError) and "was not sent" in str(error)
        with pytest.raises(redis.ResponseError, match="was not sent"):
            other.read_response()
    assert b"big" in exchange.kept()[0] and b"key1" in exchange.kept()[2]

    _wait_in_vain(client, new)
    _break_the_way(client, large)
    new.config_set("proto-max-bulk-len", 1 << 29)
    wait_for(lambda: _length(client, "big") == BIG, "it is moved")
    exchange.load(exchange.config(exchange.route()).replace("read_ms = 600", "read_ms = 200"))
    wait_for(lambda: _length(client, "huge") == HUGE, "what takes long is moved", 30)

    exchange.new.kill()
    for _ in range(3):
        with pytest.raises(redis.ResponseError, match=r"node 'a .*was not sent"):
            client.get("left")
        with pytest.raises(redis.ResponseError, match=r"node 'c .*no connection"):
            client.get("key1")
        with pytest.raises(redis.ResponseError, match=r"node 'c .*no connection"):
            client.get("nowhere")
    assert exchange.kept_by_old() == {b"left", *map(str.encode, large), b"name1", b"name2", b"weight1", b"weight2"}


def test_what_cannot_be_moved_is_there_when_the_keys_are_back(exchange: Exchange) -> None:
    """Counted all the time, beside a key that fails: each answer is true, in both directions, and nothing is lost."""
    client = exchange.client()
    keys = [f"key{number}" for number in range(100)]
    client.set("big", random.randbytes(BIG))
    exchange.to(exchange.new).config_set("proto-max-bulk-len", 1 << 20)
    exchange.begin()
    exchange.announce_back()
    done, failures = 0, 0
    while datetime.now(UTC) < exchange.back + timedelta(seconds=1):
        with client.pipeline(transaction=False) as pipeline:
            for key in keys[done % 10 :: 10]:
                pipeline.incr(key)
                pipeline.strlen("big")
            heard = pipeline.execute(raise_on_error=False)
        assert heard[::2] == [done // 10 + 1] * 10, heard[::2]
        failures += sum(isinstance(reply, redis.ResponseError) for reply in heard[1::2])
        done += 1
    assert failures > 0
    assert client.strlen("big") == BIG
    assert client.mget(keys) == [b"%d" % ((done + 9 - number % 10) // 10) for number in range(100)]
    assert exchange.kept_by_old() == {b"big", *(key.encode() for key in keys)}


def _length(client: redis.Redis, key: str) -> int:
    try:
        return int(client.strlen(key))
    except redis.ResponseError:
        return 0


def test_a_server_may_wait_for_another_one_as_long_as_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reshard_server, "WAIT_S", 0.5)
    with redis_server() as old, redis_server() as new:
        level = Level("redis", (Server(host="127.0.0.1", port=old.port),))
        with Connection(level, level.servers[0], 0, more_s=20) as connection:
            connection.ask("SET", "key", "value")
            new.freeze()
            with pytest.raises(Refused, match="IOERR error or timeout"):  # what it says itself, after a second
                connection.ask("MIGRATE", "127.0.0.1", new.port, "key", 0, 1000)


def test_a_file_that_goes_away_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.touch()
    watched = WatchedFile(str(file))
    file.unlink()
    assert watched.is_new()
