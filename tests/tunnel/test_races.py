"""Readers and writers of levels at the same time: no reader ever sees an older value again, and many ask below once."""

from __future__ import annotations

import random

import gevent
import gevent.event
import pytest
from gevent.lock import Semaphore

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import Marked
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.tunnel.tier import Pace
from tests.conn_pool.conftest import turn, until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack, begin_to_read


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_that_began_before_a_write_does_not_bring_the_old_value_back(build: Build, kind: str) -> None:
    stack = build(kind)
    stack.memory.put_many([(b"a", Put(b"old"))])
    reader, written = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    written.set()
    reader.join(10)
    assert stack.read(b"a") == [b"new"]
    assert not isinstance(stack.kept(b"a"), Item)


def test_a_reader_that_outlasts_the_mark_keeps_what_it_has_read_to_itself(build: Build) -> None:
    stack = build("redis", pace=Pace(mark_s=0.05, fill_s=0.02, slow_s=0.02))
    stack.memory.put_many([(b"a", Put(b"old"))])
    reader, over = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    until(lambda: stack.kept(b"a") is None, "the mark has ended")
    over.set()
    reader.join(10)
    assert reader.value == [b"old"]
    assert stack.read(b"a") == [b"new"]


def test_who_began_to_read_before_a_clearing_does_not_bring_a_key_back(build: Build) -> None:
    stack = build("redis")
    stack.memory.put_many([(b"a", Put(b"old"))])
    reader, go_on = begin_to_read(stack, b"a")
    clearing = gevent.spawn(stack.levels.clear)
    until(lambda: not stack.memory.items, "it is cleared below")
    turn()
    go_on.set()
    gevent.joinall([reader, clearing], timeout=10, raise_error=True)
    assert reader.value == [b"old"]
    assert stack.read(b"a") == [None]
    assert stack.kept(b"a") is None


class Gate:
    """A pause of the Memory that holds everyone until it is opened."""

    def __init__(self, stack: Stack) -> None:
        self.opened = gevent.event.Event()
        self.entered = 0
        stack.memory.pause = self

    def __call__(self) -> None:
        self.entered += 1
        self.opened.wait(10)


def test_a_thousand_readers_of_one_missing_key_ask_below_once(build: Build) -> None:
    stack = build("redis", pace=Pace(mark_s=30, fill_s=10))  # a thousand readers may take their time
    stack.memory.put_many([(b"hot", Put(b"1")), (b"warm", Put(b"2"))])
    stack.read(b"nothing")  # connected
    stack.memory.asked.clear()
    gate = Gate(stack)
    readers = [gevent.spawn(stack.read, b"hot", *([b"warm"] * (at % 2))) for at in range(1000)]
    until(lambda: gate.entered == 2 and stack.is_answered(), "both keys are asked for, and every reader waits")
    gate.opened.set()
    gevent.joinall(readers, timeout=10, raise_error=True)
    assert {tuple(reader.value) for reader in readers} == {(b"1",), (b"1", b"2")}
    assert sorted(stack.memory.asked) == [b"hot", b"warm"]


def test_all_who_share_a_question_share_its_failure(build: Build) -> None:
    stack = build("redis")
    gate = Gate(stack)

    def fail() -> None:
        gate()
        raise BackendError("user", "memory", "timeout", "no answer")

    stack.memory.pause = fail
    readers = [gevent.spawn(stack.read, b"hot") for _ in range(10)]
    until(lambda: gate.entered == 1, "it is asked")
    gate.opened.set()
    gevent.joinall(readers, timeout=10)
    assert [type(reader.exception) for reader in readers] == [BackendError] * 10
    stack.memory.pause = lambda: None
    assert stack.read(b"hot") == [None]


def test_who_comes_after_a_write_does_not_share_a_question_from_before_it(build: Build) -> None:
    stack = build("redis")
    stack.memory.put_many([(b"a", Put(b"old"))])
    before, written = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    counts = stack.tiers[0].counts
    misses = counts.level_misses
    after = [gevent.spawn(stack.read, b"a") for _ in range(20)]
    until(lambda: isinstance(stack.kept(b"a"), Marked), "it is marked")
    until(lambda: counts.level_misses == misses + 20, "those who came after have found the mark")
    gate = Gate(stack)
    written.set()
    until(lambda: gate.entered, "those who came after have asked")
    gate.opened.set()
    gevent.joinall([before, *after], timeout=10, raise_error=True)
    assert before.value == [b"old"]
    assert [reader.value for reader in after] == [[b"new"]] * 20
    assert stack.memory.asked.count(b"a") == 2  # one for who came before, one for all who came after


# How often one request in a hundred is a write: where writes go through, it is writers that meet.
WAYS = {"invalidate": 5, "through": 30, "behind": 30}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("kind", "write"),
    [("redis", "invalidate"), ("redis", "through"), ("memcache", "through"), ("redis", "behind")],
)
def test_ten_thousand_interleavings_show_no_reader_an_older_value(
    build: Build, kind: str, write: str, seed: int
) -> None:
    """Values are numbers that grow. Who begins to read a key after a write of it has ended reads that number or a
    greater one; a fifth of the pauses lets copies end, so that marks, fills and copies meet in every order."""
    # memcached counts in whole seconds: what is to stay for two of them ends after one or two.
    ttl, mark_s = {"redis": (0.3 if write != "invalidate" else 100, 0.06), "memcache": (3, 2)}[kind]
    pace = Pace(mark_s=mark_s, fill_s=0.015, slow_s=0.02)
    stack = build(kind, pace=pace, ttl=ttl, policies=[{"write": write}])
    dice = random.Random(seed)
    keys = KEYS[:6]
    written = dict.fromkeys(keys, 0)  # the greatest number whose write has ended
    numbers = iter(range(1, 10**9))
    turns = {key: Semaphore() for key in keys}
    stack.memory.pause = lambda: turn(dice.choice((0, 0, 0.001, 0.003, 0.008)))
    wrong: list[str] = []
    reads = writes = keys_read = 0

    def grow(items: list[Item | None]) -> tuple[list[Put], int]:
        number = next(numbers)  # the later it is written below, the greater
        return [Put(b"%d" % number)], number

    def change() -> None:
        nonlocal writes
        key = dice.choice(keys)
        if write == "behind":  # one after the other: of blind writes that meet, either may be the last
            with turns[key]:
                if dice.random() < 0.7:
                    number = next(numbers)
                    stack.levels.put_many([(key, Put(b"%d" % number))])
                else:
                    number = stack.levels.update([key], grow)[0]
        else:
            number = stack.levels.update([key], grow)[0]
        written[key] = max(written[key], number)
        writes += 1

    def read() -> None:
        nonlocal reads, keys_read
        some = dice.sample(keys, dice.randint(1, 3))
        least = [written[key] for key in some]
        for key, low, item in zip(some, least, stack.levels.read_many(some), strict=True):
            if _number(item) < low:
                wrong.append(f"{key!r}: {_number(item)} after {low}")
        reads += 1
        keys_read += len(some)

    def client() -> None:
        for _ in range(125):
            (change if dice.random() * 100 < WAYS[write] else read)()
            turn(dice.choice((0, 0, 0.002, 0.03)))

    gevent.joinall([gevent.spawn(client) for _ in range(20)], raise_error=True, timeout=120)
    assert wrong == []
    assert reads + writes == 2500
    assert len(stack.memory.asked) < 0.9 * keys_read  # copies were of use


def _number(item: Item | None) -> int:
    return int(item.value) if item else 0
