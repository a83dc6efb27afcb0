"""Writes that are answered before what knows has them: nobody can tell, but by how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent
import gevent.event
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.keyvalue import Put
from hyper_proxy.tunnel import behind
from hyper_proxy.tunnel.behind import ENTRY_BYTES, Behind
from hyper_proxy.tunnel.levels import Levels
from tests.conn_pool.conftest import turn, until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack

BEHIND: list[dict[str, Any]] = [{"write": "behind"}]


class Held:
    """What knows stands still until it is let go on."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.over = gevent.event.Event()

    def __enter__(self) -> Held:
        self.stack.memory.pause = lambda: self.over.wait(10)
        return self

    def __exit__(self, *raised: object) -> None:
        self.stack.memory.pause = lambda: None
        self.over.set()


def below(stack: Stack, *keys: bytes) -> list[bytes | None]:
    """What knows has itself."""
    found = [stack.memory.items.get(key) for key in keys]
    return [one.value if one else None for one in found]


def failing(stack: Stack, kind: str, *bad: bytes) -> None:
    """What knows refuses these keys, or every one, with this kind of failure."""
    put_many = stack.memory.put_many

    def refuse(entries: Any) -> None:
        if not bad or any(key in bad for key, _ in entries):
            raise BackendError("user", "memory", kind, "refused")
        put_many(entries)

    stack.memory.put_many = refuse  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_is_answered_when_the_level_has_it(build: Build, kind: str) -> None:
    stack = build(kind, policies=BEHIND)
    stack.read(*KEYS)  # connected
    with Held(stack), gevent.Timeout(5):
        stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
        stack.levels.put_many([(key, Put(b"2")) for key in KEYS])
        assert stack.read(*KEYS) == [b"2"] * len(KEYS)
        assert below(stack, *KEYS) == [None] * len(KEYS)
    until(lambda: below(stack, *KEYS) == [b"2"] * len(KEYS), "it is below")


def test_what_waits_is_found_when_the_level_has_lost_it(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    stack.read(b"a")
    with Held(stack), gevent.Timeout(5):
        stack.levels.put_many([(b"a", Put(b"1"))])
        stack.tiers[0].empty()
        assert stack.read(b"a") == [b"1"]


def test_what_waits_ends_in_its_time(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    waits = stack.behind
    assert waits is not None
    with Held(stack), gevent.Timeout(5):
        ends = time.time() + 0.5
        waits.put_many([(b"a", Put(b"1", 0, ends))])
        assert [item.value for item in waits.read_many([b"a"]) if item] == [b"1"]
        until(lambda: time.time() > ends, "its time is over")
        assert waits.read_many([b"a"]) == [None]


def test_what_depends_on_the_present_value_waits_for_it(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    stack.memory.put_many([(b"n", Put(b"1"))])
    calls: list[tuple[Callable[[], object], object]] = [
        (lambda: stack.levels.incr_signed(b"n", 1), 6),
        (lambda: stack.levels.append(b"n", b"0", create=True), 2),
        (lambda: stack.levels.put_many_if_absent([(b"n", Put(b"x"))]), False),
        (lambda: [item.value for item in stack.levels.get_many([b"n"]) if item], [b"5"]),
        (lambda: stack.levels.count(), 1),
        (lambda: stack.levels.scan(0, 10)[1], [b"n"]),
        (lambda: stack.levels.delete_many([b"n"]), 1),
    ]
    for call, told in calls:
        with Held(stack):
            stack.levels.put_many([(b"n", Put(b"5"))])
            caller = gevent.spawn(call)
        caller.join(10)
        assert caller.value == told
    assert stack.read(b"n") == [None]


def test_a_failure_below_is_tried_again_until_it_is_over(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    put_many = stack.memory.put_many
    failing(stack, "timeout")
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    backlog = stack.behind.backlog if stack.behind else None
    assert backlog is not None
    until(lambda: backlog.retries > 1, "it is tried again")
    with pytest.raises(BackendError, match="refused"):
        stack.levels.incr_signed(KEYS[0], 1)
    stack.levels.put_many([(KEYS[1], Put(b"2"))])
    assert stack.read(*KEYS[:2]) == [b"1", b"2"]
    stack.memory.put_many = put_many  # type: ignore[method-assign]
    until(lambda: not len(backlog), "it is below")
    assert below(stack, *KEYS) == [b"1", b"2", *[b"1"] * (len(KEYS) - 2)]
    assert backlog.lost == 0 and backlog.bytes == 0


def test_a_value_that_will_never_be_taken_is_lost_alone_and_counted(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    failing(stack, "value", KEYS[3])
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    assert stack.behind is not None
    backlog = stack.behind.backlog
    until(lambda: not len(backlog), "all that can be is below")
    assert backlog.lost == 1
    assert below(stack, KEYS[2], KEYS[3], KEYS[4]) == [b"1", None, b"1"]


def test_a_fault_that_nobody_has_foreseen_is_told_and_loses_nothing(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    put_many = stack.memory.put_many

    def stumble(entries: Any) -> None:
        if any(key == KEYS[3] for key, _ in entries):
            raise ZeroDivisionError("a fault of the proxy")
        put_many(entries)

    stack.memory.put_many = stumble  # type: ignore[method-assign]
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    with gevent.Timeout(5), pytest.raises(BackendError, match="a fault of the proxy"):
        stack.levels.incr_signed(KEYS[3], 1)
    assert below(stack, KEYS[2], KEYS[3], KEYS[4]) == [b"1", None, b"1"]
    stack.memory.put_many = put_many  # type: ignore[method-assign]
    assert stack.behind is not None
    backlog = stack.behind.backlog
    until(lambda: not len(backlog), "all is below")
    assert below(stack, *KEYS) == [b"1"] * len(KEYS)
    assert (backlog.lost, backlog.bytes) == (0, 0)


def test_no_more_waits_than_there_is_room_for(build: Build) -> None:
    room = 5 * (len(KEYS[0]) + 1 + ENTRY_BYTES)
    stack = build("redis", policies=[{"write": "behind", "max_behind_bytes": room}])
    stack.read(*KEYS)
    with Held(stack):
        for key in KEYS[:5]:
            stack.levels.put_many([(key, Put(b"1"))])
        further = gevent.spawn(stack.levels.put_many, [(b"further", Put(b"1"))])
        assert not further.ready()
        assert stack.behind is not None and stack.behind.backlog.bytes <= room
        turn()
        assert not further.ready()
    further.join(10)
    assert further.successful()
    assert below(stack, b"further") == [b"1"]


def test_where_the_level_is_down_a_write_is_answered_when_it_is_below(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    stack.read(*KEYS)
    for node in stack.servers[0]:
        node.kill()
    with Held(stack):
        writer = gevent.spawn(stack.levels.put_many, [(b"a", Put(b"1"))])
        until(lambda: stack.behind is not None and stack.behind.backlog.get(b"a"), "it waits")
        assert not writer.ready()
    writer.join(10)
    assert writer.successful() and below(stack, b"a") == [b"1"]


def test_a_worker_that_ends_writes_first_what_waits(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    held = Held(stack)
    with held:
        stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
        gevent.spawn_later(0.05, held.__exit__)
        behind.drain(5)
    assert below(stack, *KEYS) == [b"1"] * len(KEYS)


def test_what_is_left_when_a_worker_must_end_is_counted(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    failing(stack, "timeout")
    stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    behind.drain(0.05)
    assert stack.behind is not None and stack.behind.backlog.lost == len(KEYS)


def test_a_successor_goes_on_with_what_waits(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    with Held(stack):
        stack.levels.put_many([(b"a", Put(b"1"))])
        before = stack.levels
        assert stack.behind is not None
        successor = Behind("user", stack.memory, 0, stack.behind)  # a reload that says "through" from now on
        stack.levels = Levels(stack.tiers, successor, stack.gate)
        before.release(stack.levels)
        assert stack.read(b"a") == [b"1"]
        writer = gevent.spawn(stack.levels.put_many, [(b"a", Put(b"2"))])
        turn()
        assert not writer.ready()
    writer.join(10)
    assert below(stack, b"a") == [b"2"]
    assert stack.read(b"a") == [b"2"]


def test_writes_that_fail_hold_up_no_others_however_many_they_are(build: Build) -> None:
    stack = build("redis", policies=BEHIND)
    bad = [b"bad%d" % number for number in range(behind.ROUND + 100)]
    failing(stack, "protocol", *bad)
    stack.levels.put_many([(key, Put(b"1")) for key in bad])
    stack.levels.put_many([(b"good", Put(b"1"))])
    until(lambda: below(stack, b"good") == [b"1"], "the good one is below")
    assert below(stack, *bad) == [None] * len(bad)
