"""Writing through a level: the new value is there when the write is answered, and never over a newer one."""

from __future__ import annotations

import time
from typing import Any

import gevent
import gevent.event
import pytest

from hyper_proxy.storage.cache import Marked
from hyper_proxy.storage.keyvalue import REMOVE, Expire, Item, Put
from hyper_proxy.tunnel.tier import Pace
from tests.conn_pool.conftest import turn, until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack, begin_to_read

THROUGH: list[dict[str, Any]] = [{"write": "through"}]
QUICK = Pace(mark_s=1.0, fill_s=0.1, slow_s=0.2)


def values_above(stack: Stack, *keys: bytes) -> list[bytes | None]:
    """What the first level has itself."""
    found = [stack.kept(key) for key in keys]
    return [one.value if isinstance(one, Item) else None for one in found]


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_is_in_the_level_when_it_is_answered(build: Build, kind: str) -> None:
    stack = build(kind, policies=THROUGH)
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    assert values_above(stack, *KEYS) == [b"1"] * len(KEYS)
    assert stack.levels.incr_signed(KEYS[0], 4) == 5
    assert stack.levels.append(KEYS[1], b"23", create=True) == 3
    assert stack.levels.put_many_if_absent([(b"new", Put(b"x"))])
    assert not stack.levels.put_many_if_absent([(b"new", Put(b"y"))])
    assert values_above(stack, KEYS[0], KEYS[1]) == [b"5", b"123"]
    assert stack.read(KEYS[0], KEYS[1], b"new") == [b"5", b"123", b"x"]
    assert [stack.memory.items[key].value for key in (KEYS[0], KEYS[1], b"new")] == [b"5", b"123", b"x"]
    stack.memory.asked.clear()
    assert stack.read(*KEYS[2:]) == [b"1"] * (len(KEYS) - 2)
    assert stack.memory.asked == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_write_takes_away_is_gone_above(build: Build, kind: str) -> None:
    stack = build(kind, policies=THROUGH)
    stack.levels.put_many([(b"a", Put(b"1")), (b"b", Put(b"1")), (b"c", Put(b"1"))])
    assert stack.levels.delete_many([b"a"]) == 1
    stack.levels.expire_many([b"b"], time.time() - 1)
    stack.levels.update([b"c"], lambda items: ([REMOVE], None))
    assert values_above(stack, b"a", b"b", b"c") == [None] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_ends_with_its_item_and_is_not_made_for_a_moment(build: Build, kind: str) -> None:
    stack = build(kind, policies=THROUGH)
    now = time.time()
    stack.levels.put_many([(b"long", Put(b"1", 0, now + 50)), (b"short", Put(b"1", 0, now + 2.5)), (b"c", Put(b"1"))])
    assert values_above(stack, b"long", b"short") == [b"1", None]
    stack.levels.update([b"c"], lambda items: ([Expire(now + 2.5)], None))
    assert values_above(stack, b"c") == [None]
    assert stack.read(b"long", b"short", b"c") == [b"1"] * 3


def test_what_redis_can_not_hold_is_read_below(build: Build) -> None:
    stack = build("redis", policies=THROUGH)
    stack.levels.put_many([(b"a", Put(b"1", flags=7))])
    (item,) = stack.levels.read_many([b"a"])
    assert item is not None and (item.value, item.flags) == (b"1", 7)
    assert isinstance(stack.kept(b"a"), Marked)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_from_before_a_write_does_not_bring_the_old_value_back(build: Build, kind: str) -> None:
    stack = build(kind, policies=THROUGH)
    stack.memory.put_many([(b"a", Put(b"old"))])
    reader, go_on = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    go_on.set()
    reader.join(10)
    assert (stack.read(b"a"), values_above(stack, b"a")) == ([b"new"], [b"new"])


@pytest.mark.parametrize("kind", KINDS)
def test_two_writers_who_meet_leave_the_key_to_what_is_below(build: Build, kind: str) -> None:
    """The second to come is the first to write: the first one's value stays, and nobody sees the other again."""
    stack = build(kind, policies=THROUGH)
    stack.read(b"a")  # connected
    waiting, go_on = gevent.event.Event(), gevent.event.Event()

    def hold() -> None:
        if not waiting.is_set():
            waiting.set()
            go_on.wait(10)

    stack.memory.pause = hold
    first = gevent.spawn(stack.levels.put_many, [(b"a", Put(b"first to come"))])
    assert waiting.wait(10)
    stack.levels.put_many([(b"a", Put(b"second to come"))])
    assert stack.read(b"a") == [b"second to come"]
    go_on.set()
    first.join(10)
    assert stack.memory.items[b"a"].value == b"first to come"
    assert stack.read(b"a") == [b"first to come"]
    until(lambda: values_above(stack, b"a") == [b"first to come"], "the last mark is replaced by what is below")


def test_a_slow_write_leaves_a_mark(build: Build) -> None:
    stack = build("redis", policies=THROUGH, pace=QUICK)
    stack.memory.pause = lambda: turn(0.15)
    stack.levels.put_many([(b"a", Put(b"1"))])
    assert isinstance(stack.kept(b"a"), Marked)


@pytest.mark.parametrize("kind", KINDS)
def test_a_level_that_answers_misses_itself_has_what_was_written_after_a_meeting(build: Build, kind: str) -> None:
    stack = build(kind, policies=[{"write": "through", "on_miss": "fail"}], pace=QUICK)
    stack.levels.put_many([(b"a", Put(b"0"))])
    stack.memory.pause = lambda: turn(0.01)
    gevent.joinall([gevent.spawn(stack.levels.put_many, [(b"a", Put(b"%d" % at))]) for at in range(5)], timeout=10)
    stack.memory.pause = lambda: None
    last = stack.memory.items[b"a"].value
    until(lambda: values_above(stack, b"a") == [last], "it is there again")
    assert stack.read(b"a", b"never written") == [last, None]


def test_a_level_that_is_down_is_written_past(build: Build) -> None:
    stack = build("redis", policies=THROUGH)
    stack.levels.put_many([(key, Put(b"old")) for key in KEYS])
    stack.servers[0][0].kill()
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    assert stack.read(*KEYS) == [b"new"] * len(KEYS)
    stack.servers[0][0].start()
    until(lambda: not stack.levels.owed, "what it missed is marked")
    assert stack.read(*KEYS) == [b"new"] * len(KEYS)
