"""Caches above a storage that knows: what is read, what is kept, and what a write does to it."""

from __future__ import annotations

import time

import gevent
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import MARK
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.tunnel import marks
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.tier import Pace
from tests.conn_pool.conftest import until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_below_is_kept_above(build: Build, kind: str) -> None:
    stack = build(kind)
    values = [b"value of " + key for key in KEYS]
    stack.memory.put_many([(key, Put(value)) for key, value in zip(KEYS, values, strict=True)])
    assert stack.read(*KEYS, b"nowhere") == [*values, None]
    stack.fill(*KEYS)
    stack.memory.asked.clear()
    assert stack.read(*reversed(KEYS)) == values[::-1]
    assert stack.memory.asked == []


def test_three_levels_are_the_same_code_one_deeper(build: Build) -> None:
    stack = build("memcache", "redis")
    stack.memory.put_many([(b"a", Put(b"1"))])
    assert stack.read(b"a") == [b"1"]
    stack.wait_kept(b"a", depth=1)
    stack.wait_kept(b"a", depth=0)
    stack.memory.items.clear()
    assert stack.read(b"a", b"b") == [b"1", None]


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_is_read_at_once_and_a_copy_never_again(build: Build, kind: str) -> None:
    stack = build(kind)
    stack.levels.put_many([(b"a", Put(b"old"))])
    assert stack.read(b"a") == [b"old"]
    stack.levels.put_many([(b"a", Put(b"new"))])
    assert stack.read(b"a") == [b"new"]
    assert stack.levels.delete_many([b"a", b"b"]) == 1
    assert stack.read(b"a") == [None]


def test_a_slow_part_does_not_hold_up_what_others_miss(build: Build) -> None:
    stack = build("redis")
    by_shard: dict[int, list[bytes]] = {}
    for part in stack.tiers[0].split(KEYS):
        by_shard[part.shard] = part.keys
    stack.read(*KEYS)  # connected
    stack.memory.asked.clear()
    node = stack.servers[0][0]
    node.freeze()
    try:
        reader = gevent.spawn(stack.read, *KEYS)
        until(lambda: set(stack.memory.asked) >= set(by_shard[1]), "the misses of the fast part have gone down")
        assert not set(stack.memory.asked) & set(by_shard[0])
        assert not reader.ready()
    finally:
        node.thaw()
    reader.join(10)
    assert reader.value == [None] * len(KEYS)


def test_a_cache_that_is_down_is_passed_by(build: Build) -> None:
    stack = build("redis")
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    assert stack.read(*KEYS) == [b"1"] * len(KEYS)
    stack.servers[0][0].stop()
    assert stack.read(*KEYS) == [b"1"] * len(KEYS)
    stack.levels.put_many([(key, Put(b"2")) for key in KEYS])
    assert stack.read(*KEYS) == [b"2"] * len(KEYS)


def test_a_copy_behind_a_cut_line_is_marked_when_the_line_is_back(build: Build) -> None:
    stack = build("redis", pace=Pace(mark_s=0.05, fill_s=0.02, slow_s=0.02))
    stack.memory.put_many([(key, Put(b"old")) for key in KEYS])
    stack.fill(*KEYS)
    node = stack.servers[0][0]
    node.freeze()  # it keeps its copies, and can't be told
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    node.thaw()
    until(lambda: stack.read(*KEYS) == [b"new"] * len(KEYS), "the old copies are gone")


def test_what_is_owed_to_a_server_waits_for_no_other_that_is_away(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "ROUND", 10)
    stack = build("redis")
    stack.memory.put_many([(key, Put(b"old")) for key in KEYS])
    stack.fill(*KEYS)
    away, full = stack.servers[0]
    away.kill()
    there = next(part.keys for part in stack.tiers[0].split(KEYS) if part.shard == 1)
    stack.levels.put_many([(b"other:%d" % at, Put(b"1")) for at in range(2000)])
    full.ask(b"CONFIG SET maxmemory 1\r\n")  # what it has stays, and it takes no marks
    stack.levels.put_many([(key, Put(b"new")) for key in there])
    assert stack.read(*there) == [b"old"] * len(there)
    full.ask(b"CONFIG SET maxmemory 0\r\n")
    until(lambda: stack.read(*there) == [b"new"] * len(there), "the old copies are gone")
    assert stack.levels.owed > 500


def test_what_a_cache_cannot_hold_is_not_kept_and_not_changed(build: Build) -> None:
    stack = build("memcache", "redis")
    odd = [b"with blank", b"x" * 251, b"\xff\x00", b""]
    stack.memory.put_many([(key, Put(b"1")) for key in odd] + [(b"flags", Put(b"2", flags=7))])
    assert stack.read(*odd) == [b"1"] * 4
    (item,) = stack.levels.read_many([b"flags"])
    assert item is not None and item.flags == 7
    stack.fill(b"flags")
    assert stack.kept(b"flags", 0) == Item(b"2", 7, None, 0)
    assert stack.kept(b"flags", 1) is None  # redis has no place for flags
    stack.levels.put_many([(key, Put(b"3")) for key in odd])
    assert stack.read(*odd) == [b"3"] * 4


def test_a_copy_ends_with_its_item_and_with_its_time(build: Build) -> None:
    stack = build("redis", ttl=100)
    now = time.time()
    ends = {b"short": now + 5, b"long": now + 1000, b"ever": None}
    stack.memory.put_many([(key, Put(b"1", 0, end)) for key, end in ends.items()])
    stack.fill(b"short", b"long", b"ever")
    left = {key: int(ask_redis(stack, key)) for key in (b"short", b"long", b"ever")}
    assert 0 < left[b"short"] <= 5000
    assert 80_000 < left[b"long"] <= 110_000 and 80_000 < left[b"ever"] <= 110_000


def ask_redis(stack: Stack, key: bytes) -> bytes:
    """PTTL of a key on whichever server has it."""
    answers = [node.ask(b"PTTL %b\r\n" % key, b"\r\n") for node in stack.servers[0]]
    return max(answers, key=lambda answer: int(answer.strip(b":\r\n"))).strip(b":\r\n")


def test_clearing_empties_every_level(build: Build) -> None:
    stack = build("memcache", "redis")
    stack.memory.put_many([(key, Put(b"1")) for key in KEYS])
    stack.fill(*KEYS)
    stack.levels.clear()
    assert stack.read(*KEYS) == [None] * len(KEYS)


def test_one_server_that_cannot_be_emptied_does_not_keep_the_others_full(build: Build) -> None:
    stack = build("redis")
    stack.memory.put_many([(key, Put(b"1")) for key in KEYS])
    stack.fill(*KEYS)
    stack.servers[0][0].stop()
    with pytest.raises(BackendError):
        stack.levels.clear()
    (left,) = [part for part in stack.tiers[0].split(KEYS) if part.shard == 1]
    assert stack.tiers[0].read(left) == [None] * len(left.keys)


def test_a_successor_owes_the_marks_of_its_predecessor(build: Build) -> None:
    """What a reload or an order of an operator puts in its place."""
    stack = build("redis", pace=Pace(mark_s=0.05, fill_s=0.02, slow_s=0.02))
    stack.memory.put_many([(key, Put(b"old")) for key in KEYS])
    stack.fill(*KEYS)
    stack.servers[0][0].freeze()
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    before, stack.levels = stack.levels, Levels(stack.tiers, stack.memory, stack.gate)
    before.release(stack.levels)
    before.put_many([(KEYS[0], Put(b"newer"))])  # of a request that had begun
    stack.servers[0][0].thaw()
    wanted = [b"newer", *[b"new"] * (len(KEYS) - 1)]
    until(lambda: stack.read(*KEYS) == wanted, "the old copies are gone")
    assert before.marks[0].owed == {}


def test_a_failure_below_is_the_readers(build: Build) -> None:
    stack = build("redis")

    def fail() -> None:
        raise BackendError("user", "memory", "timeout", "no answer")

    stack.memory.pause = fail
    with pytest.raises(BackendError):
        stack.read(*KEYS)


def test_a_value_that_looks_like_a_mark_is_looked_for_below(build: Build) -> None:
    stack = build("redis")
    stack.memory.put_many([(b"a", Put(MARK))])
    assert stack.read(b"a") == [MARK]
    assert stack.read(b"a") == [MARK]
