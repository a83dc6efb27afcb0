"""Rooms that another configuration has replaced, while requests are under way to them."""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from hyper_proxy.common.gather import Gather
from hyper_proxy.config.model import Level, Server
from hyper_proxy.conn_pool.nodes import Nodes
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


def test_who_waits_for_a_verdict_when_the_rooms_are_replaced_gets_one(servers: list[Running]) -> None:
    own, peer = ((Server(host="127.0.0.1", port=server.port),) for server in servers)
    level = Level("redis", own, peers=peer)
    first, second = (Nodes("shop", one, RespParser, GREETING, None) for one in (level, second_room(level)))
    rooms = Rooms("shop", level, GREETING, RedisSpeech(), first, second)
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
