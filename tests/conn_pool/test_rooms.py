"""Rooms that another configuration has replaced, while requests are under way to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import pytest

from hyper_proxy.common.gather import Gather
from hyper_proxy.config import rooms as config
from hyper_proxy.config.model import Backoff, Level, Server
from hyper_proxy.conn_pool.nodes import Nodes
from hyper_proxy.conn_pool.pause import Pause
from hyper_proxy.conn_pool.rooms.rooms import Rooms, second_room
from hyper_proxy.stats.classes import IDEMPOTENT
from hyper_proxy.storage.redis import RedisGreeting, encode
from hyper_proxy.storage.redis_speech import RedisSpeech
from hyper_proxy.storage.resp import RespParser
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
