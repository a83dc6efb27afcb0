"""That there is nothing below is kept above, too, and goes as copies go."""

from __future__ import annotations

from time import monotonic

import gevent
import pytest

from hyper_proxy.storage.cache import ABSENT, NOTHING, Marked
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.tunnel.tier import Pace
from tests.conn_pool.conftest import turn, until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack, begin_to_read


def wait_absent(stack: Stack, *keys: bytes, depth: int = 0) -> None:
    """Read until a tier knows that there are none: a read that is late, as on a busy machine, keeps nothing."""
    for key in keys:
        until(lambda key=key: stack.read(key) == [None] and stack.kept(key, depth) == ABSENT, f"no {key!r} is kept")  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_not_there_is_looked_for_once(build: Build, kind: str) -> None:
    stack = build(kind, negative_ttl=60)
    stack.memory.put_many([(b"a", Put(b"1"))])
    assert stack.read(*KEYS, b"a") == [*[None] * len(KEYS), b"1"]
    wait_absent(stack, *KEYS)
    stack.fill(b"a")
    stack.memory.asked.clear()
    assert stack.read(b"a", *KEYS) == [b"1", *[None] * len(KEYS)]
    assert stack.memory.asked == []


def test_without_it_a_key_that_is_not_there_is_looked_for_again(build: Build) -> None:
    stack = build("redis")
    for _ in range(3):
        assert stack.read(b"a") == [None]
    assert stack.memory.asked == [b"a"] * 3
    assert stack.kept(b"a") is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_makes_the_key_seen_at_once(build: Build, kind: str) -> None:
    stack = build(kind, negative_ttl=60)
    stack.read(*KEYS)
    wait_absent(stack, *KEYS)
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS[:3]])
    stack.levels.update(KEYS[3:5], lambda items: ([Put(b"1"), Put(b"1")], None))
    assert stack.levels.put_many_if_absent([(KEYS[5], Put(b"1"))])
    assert stack.read(*KEYS) == [b"1"] * 6 + [None] * (len(KEYS) - 6)
    assert isinstance(stack.kept(KEYS[0]), Marked)


def test_it_is_kept_in_every_level(build: Build) -> None:
    stack = build("memcache", "redis", negative_ttl=60)
    stack.read(b"a")
    wait_absent(stack, b"a", depth=0)
    wait_absent(stack, b"a", depth=1)
    stack.levels.put_many([(b"a", Put(b"1"))])
    assert stack.read(b"a") == [b"1"]


@pytest.mark.parametrize("kind", KINDS)
def test_who_looked_before_a_write_does_not_hide_what_was_written(build: Build, kind: str) -> None:
    stack = build(kind, negative_ttl=60)
    reader, written = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    written.set()
    reader.join(10)
    assert reader.value == [None]
    assert isinstance(stack.kept(b"a"), Marked)
    assert stack.read(b"a") == [b"new"]


def test_who_looked_long_ago_keeps_it_to_himself(build: Build) -> None:
    stack = build("redis", negative_ttl=60, pace=Pace(mark_s=0.05, fill_s=0.02, slow_s=0.02))
    reader, over = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    until(lambda: stack.kept(b"a") is None, "the mark has ended")
    over.set()
    reader.join(10)
    assert stack.read(b"a") == [b"new"]


def test_it_ends_after_its_time(build: Build) -> None:
    stack = build("redis", negative_ttl=30)
    stack.read(b"a")
    wait_absent(stack, b"a")
    left = [int(node.ask(b"PTTL a\r\n", b"\r\n")[1:]) for node in stack.servers[0]]
    assert 26_000 < max(left) <= 33_000


def test_a_copy_does_not_take_its_place_nor_it_that_of_a_copy(build: Build) -> None:
    stack = build("redis", negative_ttl=60)
    stack.memory.put_many([(b"a", Put(b"1"))])
    stack.fill(b"a")
    (part,) = stack.tiers[0].split([b"a"])
    stack.tiers[0].fill(part.shard, [(b"a", None)], monotonic())
    assert stack.kept(b"a") == Item(b"1", 0, None, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_says_nothing_is_a_value_all_the_same(build: Build, kind: str) -> None:
    stack = build(kind, negative_ttl=60)
    stack.memory.put_many([(b"a", Put(NOTHING)), (b"b", Put(NOTHING + b"x"))])
    for _ in range(2):
        assert stack.read(b"a", b"b") == [NOTHING, NOTHING + b"x"]
        stack.fill(b"b")
    assert stack.kept(b"a") is None


def test_readers_and_writers_of_keys_that_come_and_go(build: Build) -> None:
    """Whoever reads after a write or a removal has ended sees it, while copies, absences and marks take turns."""
    stack = build("redis", negative_ttl=60, pace=Pace(mark_s=0.06, fill_s=0.015, slow_s=0.02))
    stack.memory.pause = lambda: turn(0.002)
    wrong: list[bytes] = []

    def client(key: bytes) -> None:
        for number in range(60):
            stack.levels.put_many([(key, Put(b"%d" % number))])
            if stack.read(key) != [b"%d" % number]:
                wrong.append(key)
            turn(0.001 * (number % 9) * (number % 11))
            stack.levels.delete_many([key])
            if stack.read(key) != [None]:
                wrong.append(key)
            turn(0.001 * (number % 7) * (number % 11))

    def reader() -> None:
        while not all(writer.ready() for writer in writers):
            stack.read(*KEYS[:6])

    writers = [gevent.spawn(client, key) for key in KEYS[:6]]
    gevent.joinall([*writers, *(gevent.spawn(reader) for _ in range(3))], timeout=60, raise_error=True)
    assert wrong == []
