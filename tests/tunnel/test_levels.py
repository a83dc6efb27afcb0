"""Caches above a storage that knows: what is read, what is kept, and that no reader ever sees an older value again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import gevent
import gevent.event
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Backoff, Level, Server, Timeout, WriteBack
from hyper_proxy.hashing import Placement
from hyper_proxy.hashing import build as build_placement
from hyper_proxy.stack import CACHES
from hyper_proxy.storage.cache import MARK, Marked
from hyper_proxy.storage.keyvalue import Change, Expire, Item, KeyValue, Put, Remove
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.tier import Pace, Tier
from tests.conn_pool.conftest import turn, until
from tests.kit.servers import Running, memcached, redis_server

T = TypeVar("T")
KINDS: dict[str, Callable[[], Running]] = {"redis": redis_server, "memcache": memcached}


class Memory(KeyValue):
    """The storage that knows: in memory, with a log of what it was asked, as slow as it is told to be."""

    kind = "memory"

    def __init__(self) -> None:
        self.items: dict[bytes, Item] = {}
        self.asked: list[bytes] = []
        self.version = 0
        self.pause: Callable[[], None] = lambda: None

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        self.asked += keys
        self.pause()
        found = [self.items.get(key) for key in keys]
        self.pause()
        return found

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        self.pause()
        edits, result = change([self.items.get(key) for key in keys])
        versions = []
        for key, edit in zip(keys, edits, strict=True):
            versions.append(0)
            if isinstance(edit, Put):
                self.version += 1
                versions[-1] = self.version
                self.items[key] = Item(edit.value, edit.flags, edit.expires_at, self.version)
            elif isinstance(edit, Remove):
                self.items.pop(key, None)
            elif isinstance(edit, Expire):
                old = self.items[key]
                self.items[key] = Item(old.value, old.flags, edit.expires_at, old.version)
        self.pause()
        return result, tuple(versions)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        self.update([key for key, _ in entries], lambda items: ([put for _, put in entries], None))

    def count(self) -> int:
        return len(self.items)

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        return 0, list(self.items)

    def clear(self) -> None:
        self.items.clear()


def servers_of(nodes: Sequence[Running]) -> tuple[Server, ...]:
    """With aliases, so that keys are always at the same places."""
    return tuple(Server("127.0.0.1", node.port, name=f"s{at}") for at, node in enumerate(nodes))


def placement_of(level: Level) -> Placement:
    """Where its servers have keys."""
    return build_placement("", "ketama", "", level.servers)


class Stack:
    """Levels above a Memory."""

    def __init__(self, kinds: Sequence[str], servers: Sequence[Sequence[Running]], ttl: float, pace: Pace) -> None:
        self.memory = Memory()
        self.servers = servers
        timeout, backoff = Timeout(500, 2000, 2000), Backoff(20, 50)
        levels = [
            Level(kind, servers_of(nodes), timeout=timeout, backoff=backoff)
            for kind, nodes in zip(kinds, servers, strict=True)
        ]
        self.tiers = [
            Tier("user", level, WriteBack(ttl), CACHES[level.storage](level), placement_of(level), None, pace)
            for level in levels
        ]
        self.levels = Levels(self.tiers, self.memory)

    def read(self, *keys: bytes) -> list[bytes | None]:
        """The values."""
        return [item.value if item else None for item in self.levels.read_many(keys)]

    def kept(self, key: bytes, depth: int = 0) -> Any:
        """What a tier says of a key."""
        (part,) = self.tiers[depth].split([key])
        return self.tiers[depth].read(part)[0]

    def is_answered(self) -> bool:
        """Has the first tier answered everything that it was asked?"""
        lanes = [lane for node in self.tiers[0].nodes for lane in node.lanes]
        return not any(lane.in_flight or lane.queued for lane in lanes)

    def wait_kept(self, *keys: bytes, depth: int = 0) -> None:
        """Until the keys are in a tier: a fill is not waited for by anybody."""
        for key in keys:
            until(lambda key=key: isinstance(self.kept(key, depth), Item), f"{key!r} is filled in")  # type: ignore[misc]


def begin_to_read(stack: Stack, key: bytes) -> tuple[gevent.Greenlet, gevent.event.Event]:
    """A reader that has read what is below now and does not go on until the event is set; others read on."""
    reading, go_on = gevent.event.Event(), gevent.event.Event()

    def pause() -> None:  # there are two in a read: before it and after it
        if reading.is_set():
            go_on.wait(10)
        reading.set()

    stack.memory.pause = pause
    reader = gevent.spawn(stack.read, key)
    assert reading.wait(10)
    stack.memory.pause = lambda: None
    return reader, go_on


Build = Callable[..., Stack]


@pytest.fixture
def build() -> Iterator[Build]:
    """`build("memcache", "redis")`: two servers for each tier, from the top."""
    running: list[Running] = []
    stacks: list[Stack] = []

    def start(*kinds: str, ttl: float = 100, pace: Pace | None = None) -> Stack:
        tiers = [[KINDS[kind](), KINDS[kind]()] for kind in kinds]
        running.extend(node for nodes in tiers for node in nodes)
        stacks.append(Stack(kinds, tiers, ttl, pace or Pace()))
        return stacks[-1]

    yield start
    for stack in stacks:
        stack.levels.release(None)
    for node in running:
        node.stop()


KEYS = [b"key:%d" % number for number in range(40)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_below_is_kept_above(build: Build, kind: str) -> None:
    stack = build(kind)
    values = [b"value of " + key for key in KEYS]
    stack.memory.put_many([(key, Put(value)) for key, value in zip(KEYS, values, strict=True)])
    assert stack.read(*KEYS, b"nowhere") == [*values, None]
    stack.wait_kept(*KEYS)
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
    stack.read(*KEYS)
    stack.wait_kept(*KEYS)
    node = stack.servers[0][0]
    node.freeze()  # it keeps its copies, and can't be told
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    node.thaw()
    until(lambda: stack.read(*KEYS) == [b"new"] * len(KEYS), "the old copies are gone")


def test_what_a_cache_cannot_hold_is_not_kept_and_not_changed(build: Build) -> None:
    stack = build("memcache", "redis")
    odd = [b"with blank", b"x" * 251, b"\xff\x00", b""]
    stack.memory.put_many([(key, Put(b"1")) for key in odd] + [(b"flags", Put(b"2", flags=7))])
    assert stack.read(*odd) == [b"1"] * 4
    (item,) = stack.levels.read_many([b"flags"])
    assert item is not None and item.flags == 7
    stack.wait_kept(b"flags", depth=0)
    assert stack.kept(b"flags", 0) == Item(b"2", 7, None, 0)
    assert stack.kept(b"flags", 1) is None  # redis has no place for flags
    stack.levels.put_many([(key, Put(b"3")) for key in odd])
    assert stack.read(*odd) == [b"3"] * 4


def test_a_copy_ends_with_its_item_and_with_its_time(build: Build) -> None:
    stack = build("redis", ttl=100)
    now = time.time()
    ends = {b"short": now + 5, b"long": now + 1000, b"ever": None}
    stack.memory.put_many([(key, Put(b"1", 0, end)) for key, end in ends.items()])
    stack.read(b"short", b"long", b"ever")
    stack.wait_kept(b"short", b"long", b"ever")
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
    stack.read(*KEYS)
    stack.wait_kept(*KEYS, depth=0)
    stack.levels.clear()
    assert stack.read(*KEYS) == [None] * len(KEYS)


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
    stack = build("redis")
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
    after = [gevent.spawn(stack.read, b"a") for _ in range(20)]
    until(lambda: isinstance(stack.kept(b"a"), Marked), "it is marked")
    gate = Gate(stack)
    written.set()
    until(lambda: gate.entered, "those who came after have asked")
    gate.opened.set()
    gevent.joinall([before, *after], timeout=10, raise_error=True)
    assert before.value == [b"old"]
    assert [reader.value for reader in after] == [[b"new"]] * 20
    assert stack.memory.asked.count(b"a") == 2  # one for who came before, one for all who came after


@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_interleavings_show_no_reader_an_older_value(build: Build, seed: int) -> None:
    """Values are numbers that grow. Who begins to read a key after a write of it has ended reads that number or a
    greater one; a fifth of the pauses lets copies end, so that marks, fills and copies meet in every order."""
    stack = build("redis", pace=Pace(mark_s=0.06, fill_s=0.015, slow_s=0.02))
    dice = random.Random(seed)
    keys = KEYS[:6]
    written = dict.fromkeys(keys, 0)  # the greatest number whose write has ended
    numbers = iter(range(1, 10**9))
    stack.memory.pause = lambda: turn(dice.choice((0, 0, 0.001, 0.003, 0.008)))
    wrong: list[str] = []
    reads = writes = keys_read = 0

    def write() -> None:
        nonlocal writes
        key, number = dice.choice(keys), next(numbers)
        stack.levels.update([key], lambda items: ([Put(b"%d" % max(number, _number(items[0])))], None))
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
            (write if dice.random() < 0.05 else read)()
            turn(dice.choice((0, 0, 0.002, 0.03)))

    gevent.joinall([gevent.spawn(client) for _ in range(20)], raise_error=True, timeout=120)
    assert wrong == []
    assert reads + writes == 2500
    assert len(stack.memory.asked) < 0.9 * keys_read  # copies were of use


def _number(item: Item | None) -> int:
    return int(item.value) if item else 0
