"""What is said of a level: which misses and failures go on below, who may write to it, how long it is waited for."""

from __future__ import annotations

import gevent
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.keyvalue import Item, Partial, Put
from tests.conn_pool.conftest import until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack


def fill(stack: Stack, *keys: bytes, value: bytes = b"copy") -> None:
    """Put copies into the first level past the levels, as another program would."""
    for part in stack.tiers[0].split(keys):
        cache = stack.tiers[0].cache
        requests = [request for key in part.keys if (request := cache.fill(key, Item(value, 0, None, 0), 100))]
        assert len(stack.tiers[0].ask(part.shard, requests, 1)) == len(part.keys)


def by_shard(stack: Stack) -> dict[int, list[bytes]]:
    """The keys by the server of the first level."""
    return {part.shard: part.keys for part in stack.tiers[0].split(KEYS)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_miss_that_fails_is_a_miss_for_the_client(build: Build, kind: str) -> None:
    stack = build(kind, policies=[{"on_miss": "fail", "read_only": True}])
    stack.memory.put_many([(b"a", Put(b"below")), (b"b", Put(b"below"))])
    fill(stack, b"a")
    assert stack.read(b"a", b"b", b"nowhere") == [b"copy", None, None]
    assert stack.memory.asked == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_only_level_is_neither_filled_nor_marked_nor_emptied(build: Build, kind: str) -> None:
    stack = build(kind, "redis", policies=[{"read_only": True}, {}], negative_ttl=10)
    fill(stack, b"theirs")
    stack.levels.put_many([(b"a", Put(b"1")), (b"theirs", Put(b"2"))])
    assert stack.read(b"a", b"theirs", b"nothing") == [b"1", b"copy", None]
    stack.levels.delete_many([b"a"])
    stack.levels.clear()
    assert [stack.kept(key) for key in (b"a", b"nothing")] == [None, None]
    assert stack.read(b"theirs") == [b"copy"]


def test_around_leaves_copies_until_they_end(build: Build) -> None:
    stack = build("redis", policies=[{"write": "around"}])
    stack.memory.put_many([(b"a", Put(b"old"))])
    stack.fill(b"a")
    stack.levels.put_many([(b"a", Put(b"new")), (b"b", Put(b"new"))])
    assert stack.read(b"a", b"b") == [b"old", b"new"]
    assert not isinstance(stack.kept(b"c"), Item)
    stack.fill(b"b")


def test_an_error_that_fails_names_the_server_and_costs_its_own_keys_only(build: Build) -> None:
    stack = build("redis", policies=[{"on_error": "fail"}])
    stack.memory.put_many([(key, Put(b"1")) for key in KEYS])
    keys = by_shard(stack)
    stack.servers[0][0].kill()
    with pytest.raises(Partial) as raised:
        stack.read(*KEYS)
    found = raised.value.found
    assert {key for key, one in found.items() if isinstance(one, BackendError)} == set(keys[0])
    assert all(isinstance(found[key], Item) for key in keys[1])
    with pytest.raises(BackendError, match="instance 'user' node 's0") as one:
        stack.read(*keys[0])
    assert not isinstance(one.value, Partial)
    assert not set(stack.memory.asked) & set(keys[0])


def test_a_failure_below_costs_the_keys_that_are_only_there(build: Build) -> None:
    stack = build("redis")
    stack.memory.put_many([(key, Put(b"1")) for key in KEYS])
    kept = KEYS[:10]
    stack.fill(*kept)

    def fail() -> None:
        raise BackendError("user", "memory", "timeout", "no answer")

    stack.memory.pause = fail
    with pytest.raises(Partial) as raised:
        stack.read(*KEYS)
    found = raised.value.found
    assert {key for key, one in found.items() if isinstance(one, Item)} == set(kept)
    assert {one.node for one in found.values() if isinstance(one, BackendError)} == {"memory"}


@pytest.mark.parametrize("kind", KINDS)
def test_an_optional_level_that_is_late_is_passed_by_and_costs_nobody_else_anything(build: Build, kind: str) -> None:
    stack = build(kind, policies=[{"optional": True, "deadline_ms": 200}])
    stack.memory.put_many([(key, Put(b"1")) for key in KEYS])
    stack.fill(*KEYS)
    keys = by_shard(stack)
    node = stack.servers[0][0]
    lane = stack.tiers[0].lanes(stack.tiers[0].cache.greeting)[0]
    stack.memory.asked.clear()
    node.freeze()
    try:
        with gevent.Timeout(1):  # the server itself has two seconds
            assert stack.read(*KEYS) == [b"1"] * len(KEYS)
        assert set(stack.memory.asked) == set(keys[0])
        late = lane.in_flight
        assert late > 0
    finally:
        node.thaw()
    until(lambda: lane.in_flight == 0, "the late answers have come")
    stack.memory.asked.clear()
    assert [stack.read(key) for key in KEYS] == [[b"1"]] * len(KEYS)  # each answer to its own question
    assert stack.memory.asked == []
    assert lane.is_open and lane.node.errors["late"] == late


def test_a_write_does_not_wait_for_an_optional_level_either(build: Build) -> None:
    stack = build("redis", policies=[{"optional": True, "deadline_ms": 200}])
    stack.memory.put_many([(key, Put(b"old")) for key in KEYS])
    stack.fill(*KEYS)
    node = stack.servers[0][0]
    node.freeze()
    try:
        with gevent.Timeout(1):
            stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    finally:
        node.thaw()
    until(lambda: stack.read(*KEYS) == [b"new"] * len(KEYS), "the old copies are gone")
