"""Rooms that another configuration has replaced, while requests are under way to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from errno import EIO
from pathlib import Path
from typing import Any

import gevent
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.config import rooms as config
from hyper_proxy.config.model import Backoff, Level, Server
from hyper_proxy.conn_pool.asking import ask_all
from hyper_proxy.conn_pool.nodes import Nodes
from hyper_proxy.conn_pool.pause import Pause
from hyper_proxy.conn_pool.rooms.pair import DOWN
from hyper_proxy.conn_pool.rooms.rooms import Rooms, second_room
from hyper_proxy.stats.classes import IDEMPOTENT
from hyper_proxy.storage.redis import RedisGreeting, encode
from hyper_proxy.storage.redis_speech import RedisSpeech
from hyper_proxy.storage.resp import RespParser
from tests.conn_pool.conftest import until
from tests.kit.servers import Running, redis_server

GREETING = RedisGreeting("", "", 0, 2)


@pytest.fixture
def servers() -> Iterator[list[Running]]:
    """Of a pair."""
    with redis_server() as first, redis_server() as second:
        yield [first, second]


def rooms_of(servers: list[Running], options: config.Rooms = config.USUAL_ROOMS, **level: Any) -> Rooms:
    """One pair."""
    own, peer = ((Server(host="127.0.0.1", port=server.port),) for server in servers)
    settings = Level("redis", own, peers=peer, rooms=options, **level)
    first, second = (Nodes("shop", one, RespParser, GREETING, None) for one in (settings, second_room(settings)))
    return Rooms("shop", settings, GREETING, RedisSpeech(), first, second)


def mirror(folder: Path, **options: Any) -> config.Rooms:
    """Writes go to both, and what one misses is kept in this folder."""
    return config.Rooms(writes="mirror", folder=str(folder), hold_s=0.1, **options)


def test_who_waits_for_a_verdict_when_the_rooms_are_replaced_gets_one(servers: list[Running]) -> None:
    rooms = rooms_of(servers)
    lane = rooms.targets[0].lane(GREETING)
    gather = Gather()
    for key, frozen in (("a", False), ("b", True), ("c", True)):
        if frozen:
            servers[0].freeze()
        lane.submit(encode("SET", key, "x"), IDEMPOTENT, gather, gather.expect())
        if frozen:
            rooms.stop()
        with gevent.Timeout(10):
            gather.wait()
    assert gather.slots == [b"+OK\r\n"] * 3
    assert servers[1].ask(b"GET b\r\n", b"x\r\n") == b"$1\r\nx\r\n"


def test_what_a_server_said_a_while_ago_says_nothing_about_how_it_is_now(servers: list[Running]) -> None:
    (pair,) = rooms_of(servers).pairs
    node = pair.nodes[pair.active]
    node.refusals[GREETING] = Pause(Backoff(60_000, 60_000))
    node.refusals[GREETING].lengthen("Redis is loading the dataset in memory", "loading")
    error = node.admit(GREETING)
    assert error is not None and error.kind == "loading" and "not tried again yet" in str(error)
    pair.suspect(pair.active, error)
    assert pair.nodes[pair.active] is node


class Mirror:
    """A pair of which one side misses what is written."""

    def __init__(self, servers: list[Running], folder: Path, **more: Any) -> None:
        options = {key: more.pop(key) for key in ("sync",) if key in more}
        self.servers = servers
        self.rooms = rooms_of(servers, mirror(folder, **options), **more)
        (self.pair,) = self.rooms.pairs
        (self.copying,) = self.rooms.copyings
        self.away = 1 - self.pair.active

    def write(self, values: dict[str, str]) -> list[bytes | BackendError]:
        """One after another."""
        lane = self.rooms.targets[0].lane(GREETING)
        return [ask_all(lane, [encode("SET", key, value)], IDEMPOTENT)[0] for key, value in values.items()]

    def miss(self, values: dict[str, str]) -> None:
        """These are written while the peer stands still."""
        until(self.is_well, "both are well")
        self.servers[1].freeze()
        until(lambda: self.pair.state(self.away) & DOWN, "one is down")
        assert set(self.write(values)) == {b"+OK\r\n"}

    def is_well(self) -> bool:
        """Have both given a sign of life, and all that they should have?"""
        return None not in self.pair.heard_since and self.is_equal()

    def is_equal(self) -> bool:
        """Has it missed nothing that it still lacks?"""
        return self.pair.state(self.away) == 0

    def has(self) -> int:
        """So many keys are at the peer."""
        return int(self.servers[1].ask(b"DBSIZE\r\n")[1:])


@pytest.fixture
def make(servers: list[Running], tmp_path: Path) -> Iterator[Callable[..., Mirror]]:
    """Makes a Mirror."""
    made: list[Mirror] = []

    def one(**more: Any) -> Mirror:
        made.append(Mirror(servers, tmp_path, **more))
        return made[0]

    yield one
    for each in made:
        each.rooms.stop()


def test_large_values_behind_small_ones_are_copied_a_few_at_a_time(make: Callable[..., Mirror]) -> None:
    mirror = make()
    mirror.servers[0].ask(b"CONFIG SET rdbcompression no client-output-buffer-limit 'normal 10mb 0 0'\r\n")
    small = {f"small:{number}": "x" for number in range(130)}
    mirror.miss(small | {f"large:{number}": "x" * (4 << 20) for number in range(10)})
    mirror.servers[1].thaw()
    until(mirror.is_equal, "it is equal")
    assert mirror.has() == 140


def test_keys_whose_size_is_not_told_are_copied(make: Callable[..., Mirror]) -> None:
    mirror = make()
    mirror.servers[0].ask(b"ACL SETUSER default -memory\r\n")
    mirror.miss({f"small:{number}": "x" for number in range(130)})
    mirror.servers[1].thaw()
    until(mirror.is_equal, "it is equal")
    assert mirror.has() == 130


def test_nothing_is_copied_to_a_side_that_serves_by_now(make: Callable[..., Mirror]) -> None:
    mirror = make()
    until(mirror.is_well, "both are well")
    assert mirror.write({"k": "old"}) == [b"+OK\r\n"]
    mirror.rooms.stop()
    copy = mirror.copying.carrier.carry(mirror.away, [(0, b"k")])
    mirror.pair.start_with(mirror.away)
    mirror.servers[1].ask(b"SET k new\r\n")
    with pytest.raises(BackendError, match="it serves by now"):
        list(copy)
    assert mirror.servers[1].ask(b"GET k\r\n", b"new\r\n") == b"$3\r\nnew\r\n"


def test_a_doubtful_key_that_can_not_be_copied_has_no_other_copied_again(make: Callable[..., Mirror]) -> None:
    mirror = make()
    until(mirror.is_well, "both are well")
    mirror.servers[1].ask(b"ACL SETUSER default resetkeys ~k*\r\n")
    mirror.copying.doubt({(0, b"other"), *((0, b"k%d" % number) for number in range(40))})
    node = mirror.pair.nodes[mirror.away]
    until(lambda: node.errors["protocol"] >= 4, "it was tried some times")
    assert node.counts.copied == 40
    mirror.servers[1].ask(b"ACL SETUSER default allkeys\r\n")
    until(lambda: node.counts.copied == 41, "it is copied, too")


def test_a_disk_that_fails_costs_no_write(
    make: Callable[..., Mirror], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mirror = make(sync="yes")
    mirror.miss({"before": "x"})

    def fail(_: int) -> None:
        raise OSError(EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    assert mirror.write({"after": "y", "more": "z"}) == [b"+OK\r\n"] * 2
    assert not any(mirror.copying.overlap.counts)
    mirror.servers[1].thaw()
    until(mirror.is_equal, "it is copied whole")
    assert mirror.has() == 3
    told = [line for line in capfd.readouterr().err.splitlines() if "room.lost" in line or "room.unsafe" in line]
    assert [line.split()[2] for line in told] == ["room.lost", "room.unsafe"]
    assert all("Input/output error" in line for line in told)


def test_a_write_that_could_not_begin_holds_up_no_copy(
    make: Callable[..., Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = make()
    mirror.miss({"before": "x"})
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(mirror.copying, "keep", raise_memory_error)
        mirror.write({"never": "x"})
    mirror.servers[1].thaw()
    until(mirror.is_equal, "it is equal")
    assert mirror.write({"never": "y"}) == [b"+OK\r\n"]
    assert not any(mirror.copying.overlap.counts)


def raise_memory_error(*_: object) -> None:
    """As any step may."""
    raise MemoryError
