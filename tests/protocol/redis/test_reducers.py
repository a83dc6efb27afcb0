"""Replies of three shards made one: of real servers where they can give them, else byte for byte."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hyper_proxy.protocol.redis import encode
from hyper_proxy.protocol.redis.commands import resolve
from hyper_proxy.protocol.redis.reducers import REDUCERS, Context
from hyper_proxy.storage.redis_reply import BadReply, parse
from tests.protocol.raw import Raw

Ask = Callable[[str], object]


def context(resp: int = 2) -> Context:
    return Context(resp, random.Random(7))


@pytest.fixture(params=[2, 3])
def ask(connect: Callable[[int], Raw], request: pytest.FixtureRequest) -> Ask:
    """Sends a command to all three servers, reduces the replies, and gives what the client reads."""
    shards = [connect(node) for node in range(3)]
    for shard in shards:
        shard.redis(b"hello", str(request.param).encode())
        shard.redis(b"function", b"flush")
        shard.redis(b"script", b"flush")

    def ask_all(line: str) -> object:
        argv = line.encode().split(b" ")
        replies = [shard.redis(*argv) for shard in shards]
        reply = REDUCERS[resolve(argv).reduce](replies, context(request.param))
        return reply if reply.startswith(b"-") else parse(reply)

    for node, shard in enumerate(shards):
        for number in range(node):
            shard.redis(b"set", b"key%d:%d" % (node, number), b"v")
    return ask_all


def test_keys_are_counted_listed_and_flushed(ask: Ask) -> None:
    assert ask("dbsize") == 3
    keys = ask("keys key*")
    assert isinstance(keys, list)
    assert sorted(keys) == [b"key1:0", b"key2:0", b"key2:1"]
    assert ask("keys nothing*") == []
    assert ask("randomkey") in keys
    assert ask("flushall") == b"OK"
    assert ask("randomkey") is None
    assert ask("dbsize") == 0


def test_a_script_exists_when_all_have_it(ask: Ask, connect: Callable[[int], Raw]) -> None:
    sha = ask("script load return-1")
    assert isinstance(sha, bytes)
    assert ask(f"script exists {sha.decode()} 0123") == [1, 0]
    connect(1).redis(b"script", b"flush")
    assert ask(f"script exists {sha.decode()} 0123") == [0, 0]
    assert ask("script flush") == b"OK"
    assert ask("script kill") == b"-NOTBUSY No scripts in execution right now.\r\n"


def test_an_error_of_one_shard_is_the_reply(ask: Ask, connect: Callable[[int], Raw]) -> None:
    code = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)"
    connect(2).redis(b"function", b"load", code)
    assert ask("function delete lib") == b"-ERR Library not found\r\n"


def test_function_stats_are_those_of_a_server(ask: Ask) -> None:
    stats = ask("function stats")
    assert isinstance(stats, list)
    assert stats[:2] == [b"running_script", None]


def test_listeners_are_counted_over_all_shards(ask: Ask, connect: Callable[[int], Raw]) -> None:
    for node, channels in enumerate(([b"one"], [b"one", b"two"], [b"three"])):
        listener = connect(node)
        for channel in channels:
            listener.redis(b"subscribe", channel)
    connect(0).redis(b"psubscribe", b"t*")
    assert ask("pubsub numsub one two four one") == [b"one", 2, b"two", 1, b"four", 0, b"one", 2]
    heard = ask("pubsub channels")
    assert isinstance(heard, list)
    assert sorted(heard) == [b"one", b"three", b"two"]
    assert ask("pubsub numpat") == 1
    assert ask("publish one hi") == 2
    assert ask("wait 0 0") == 0
    assert ask("pubsub shardchannels") == []
    assert ask("pubsub shardnumsub a") == [b"a", 0]


@pytest.mark.parametrize("name", sorted(set(REDUCERS) - {"any_ok"}))
def test_the_first_error_in_shard_order_wins(name: str) -> None:
    assert REDUCERS[name]([b":1\r\n", b"-ERR one\r\n", b"-ERR two\r\n"], context()) == b"-ERR one\r\n"


def test_one_server_with_something_to_kill_is_enough() -> None:
    nothing = b"-NOTBUSY No scripts in execution right now.\r\n"
    assert REDUCERS["any_ok"]([nothing, encode.OK, nothing], context()) == encode.OK
    assert REDUCERS["any_ok"]([nothing, nothing], context()) == nothing


def test_the_least_number_of_replicas_counts() -> None:
    assert REDUCERS["minimum"]([b":2\r\n", b":1\r\n", b":3\r\n"], context()) == b":1\r\n"


def test_the_server_that_runs_a_script_is_shown() -> None:
    idle = b"*4\r\n$14\r\nrunning_script\r\n$-1\r\n$7\r\nengines\r\n*0\r\n"
    busy = b"*4\r\n$14\r\nrunning_script\r\n*0\r\n$7\r\nengines\r\n*0\r\n"
    assert REDUCERS["running"]([idle, busy, idle], context()) == busy
    assert REDUCERS["running"]([idle, idle], context()) == idle


def test_a_random_key_comes_from_any_shard_that_has_one() -> None:
    chance = Context(3, random.Random(1))
    replies = [b"_\r\n", b"$1\r\na\r\n", b"$1\r\nb\r\n"]
    assert {REDUCERS["random"](replies, chance) for _ in range(50)} == set(replies[1:])
    assert REDUCERS["random"]([b"$-1\r\n"], chance) == b"_\r\n"


@pytest.mark.parametrize(
    ("name", "replies"),
    [
        ("sum", [b"+OK\r\n"]),
        ("sum", [b":x\r\n"]),
        ("sum", [b":1\r\n:2\r\n"]),
        ("all_ok", [encode.OK, b":1\r\n"]),
        ("concat", [b"$1\r\na\r\n"]),
        ("concat", [b"*-1\r\n"]),
        ("union", [b":1\r\n"]),
        ("union", [b"*1\r\n$5\r\nabc\r\n"]),
        ("sum_by_name", [b"*2\r\n$1\r\na\r\n:1\r\n", b"*0\r\n"]),
        ("sum_by_name", [b"*1\r\n$1\r\na\r\n"]),
        ("sum_by_name", [b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"]),
        ("minimum_by_position", [b"*1\r\n:1\r\n", b"*2\r\n:1\r\n:1\r\n"]),
        ("running", [b"*0\r\n"]),
        ("random", [b"?\r\n"]),
        ("random", [b""]),
    ],
)
def test_a_reply_that_the_command_never_gives_is_no_reply(name: str, replies: list[bytes]) -> None:
    with pytest.raises(BadReply):
        REDUCERS[name](replies, context())
