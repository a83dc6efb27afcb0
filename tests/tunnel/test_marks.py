"""Marks that could not be set: what is owed to whom, until when, across reloads and faults."""

from __future__ import annotations

import re
from time import monotonic
from typing import Any

import gevent
import gevent.event
import pytest

from hyper_proxy.config.model import Level, WriteBack
from hyper_proxy.stack import CACHES
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.tunnel import marks
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.tier import Pace, Tier
from tests.conn_pool.conftest import until
from tests.tunnel.conftest import KEYS, KINDS, Build, Stack, begin_to_read, placement_of, servers_of

QUICK = Pace(mark_s=0.05, fill_s=0.02, slow_s=0.02)


class Places:
    """A placement of a plug-in, as it were, that fails at one key."""

    def __init__(self, real: Any, bad: bytes) -> None:
        self.real = real
        self.bad = bad
        self.failures = 0

    def locate(self, key: bytes, start: int, end: int) -> Any:
        return self.real.locate(key, start, end)

    def everywhere(self, key: bytes) -> Any:
        if key == self.bad:
            self.failures += 1
            raise ZeroDivisionError("a fault of a plug-in")
        return self.real.everywhere(key)


def keep_old(stack: Stack) -> None:
    """Copies of all keys, which are about to be old."""
    stack.memory.put_many([(key, Put(b"old")) for key in KEYS])
    stack.fill(*KEYS)


def reload(stack: Stack, level: Level, write_back: WriteBack) -> Levels:
    """Another configuration of the tier takes over. Returns the levels of before."""
    old = stack.tiers[0]
    cache, placement = CACHES[level.storage](level), placement_of(level)
    stack.tiers = [Tier(old.instance, level, write_back, cache, placement, old, old.pace)]
    before, stack.levels = stack.levels, Levels(stack.tiers, stack.memory, stack.gate)
    stack.levels.follow(before)
    before.release(stack.levels)
    return before


def set_memory(stack: Stack, most: int, depth: int = 0) -> None:
    """With 1 the servers of a tier keep what they have and take no marks, with 0 they do."""
    for server in stack.servers[depth]:
        assert server.ask(b"CONFIG SET maxmemory %d\r\n" % most) == b"+OK\r\n"


def given_up(instance: str, text: str) -> list[int]:
    """What the log says of marks of an instance that were given up, line by line."""
    line = rf"write_back.marks_given_up instance={instance} storage=redis keys=(\d+)"
    return [int(count) for count in re.findall(line, text)]


def test_what_is_given_up_is_told_in_full_and_once_however_quickly_it_comes(
    build: Build, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(marks, "MAX_OWED", 5)
    stack = build("redis", pace=Pace(slow_s=60))  # a write that is slow here owes its marks once all the same
    stack.tiers[0].instance = "few"  # stacks of other tests still owe what nobody takes, and may give that up
    for server in stack.servers[0]:
        server.kill()
    monkeypatch.setattr(marks, "AGAIN_S", 60)  # what is tried in between is owed, and may be given up, once more
    for _ in range(3):
        stack.levels.put_many([(key, Put(b"1")) for key in KEYS])
    monkeypatch.setattr(marks, "AGAIN_S", 0.05)
    before = reload(stack, stack.tiers[0].level, stack.tiers[0].write_back)  # it owes what is left, and tells of that
    for server in stack.servers[0]:
        server.start()
    lost = 3 * (len(KEYS) - 5)
    said: list[int] = []

    def is_told() -> bool:
        said.extend(given_up("few", capfd.readouterr().err))
        return sum(said) >= lost

    until(is_told, "all is told")
    until(lambda: before.owed + stack.levels.owed == 0, "the others were marked, and there is no more to be told")
    assert is_told() and sum(said) == lost


def test_the_later_end_of_two_debts_counts(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "AGAIN_S", 60)  # what is tried in between is not in `owed`
    stack = build("redis", ttl=100)
    for server in stack.servers[0]:
        server.kill()
    before = stack.levels
    stack.levels.put_many([(b"a", Put(b"1"))])
    reload(stack, stack.tiers[0].level, WriteBack(1, jitter=0))
    heir = stack.levels.marks[0]
    heir.older_until = 0.0  # else there are no earlier ends than those of before
    stack.levels.put_many([(b"a", Put(b"2")), (b"b", Put(b"1"))])
    ends = {key: end for debts in heir.owed.values() for key, end in debts.items()}
    assert ends[b"a"] > monotonic() + 60 > ends[b"b"]
    before.put_many([(b"b", Put(b"2"))])  # of a request that had begun
    assert all(end > monotonic() + 60 for debts in heir.owed.values() for end in debts.values())


def test_a_lower_ttl_does_not_shorten_what_is_owed_for_the_copies_of_before(build: Build) -> None:
    stack = build("redis", ttl=100)
    keep_old(stack)
    reload(stack, stack.tiers[0].level, WriteBack(0.1, jitter=0))
    set_memory(stack, 1)
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    over = monotonic() + stack.tiers[0].write_back.longest_s + 0.1
    until(lambda: monotonic() > over, "copies with the new ttl would have ended")
    assert stack.read(KEYS[0]) == [b"old"]
    set_memory(stack, 0)
    until(lambda: stack.read(*KEYS) == [b"new"] * len(KEYS), "the old copies are gone")


def test_what_is_owed_is_paid_though_a_key_can_not_be_placed(
    build: Build, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(marks, "AGAIN_S", 0.05)
    stack = build("redis", pace=QUICK)
    keep_old(stack)
    for server in stack.servers[0]:
        server.freeze()
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    places = stack.tiers[0].placement = Places(stack.tiers[0].placement, KEYS[7])
    for server in stack.servers[0]:
        server.thaw()
    until(lambda: stack.levels.owed == 1, "all but that one are marked")
    assert [value for key, value in zip(KEYS, stack.read(*KEYS), strict=True) if key != KEYS[7]] == [b"new"] * 39
    assert places.failures and "a fault of a plug-in" in capfd.readouterr().err
    places.bad = b""
    until(lambda: stack.levels.owed == 0 and stack.read(KEYS[7]) == [b"new"], "that one, too, when it can be")


def test_what_is_being_paid_is_owed_until_it_is_paid(build: Build) -> None:
    stack = build("redis", pace=QUICK)
    keep_old(stack)
    for server in stack.servers[0]:
        server.freeze()
    stack.levels.put_many([(key, Put(b"new")) for key in KEYS])
    until(lambda: bool(stack.levels.marks[0].trying), "a round is under way")
    assert stack.levels.owed == len(KEYS)
    for server in stack.servers[0]:
        server.thaw()
    until(lambda: stack.levels.owed == 0, "all are marked")
    assert stack.read(*KEYS) == [b"new"] * len(KEYS)


@pytest.mark.parametrize("is_told", [True, False])
def test_what_a_level_has_copied_of_one_that_lacked_a_mark_is_old_no_longer_than_that(
    build: Build, is_told: bool
) -> None:
    stack = build("redis", "redis", pace=Pace(mark_s=0.5, fill_s=0.3, slow_s=0.1), ttl=2)
    stack.memory.put_many([(b"a", Put(b"old"))])
    stack.fill(b"a")
    stack.wait_kept(b"a", depth=1)
    set_memory(stack, 1, depth=1)
    stack.tiers[0].write_back = WriteBack(300)  # it keeps what it gets for much longer
    stack.levels.put_many([(b"a", Put(b"new"))])
    until(lambda: stack.read(b"a") == [b"old"] and isinstance(stack.kept(b"a"), Item), "the old copy is copied")
    if is_told:
        set_memory(stack, 0, depth=1)
    until(lambda: stack.levels.owed == 0, "it is told of the write, or its copy has ended")
    assert stack.read(b"a") == [b"new"]


def test_a_write_that_ends_in_a_fault_is_marked_again(build: Build) -> None:
    stack = build("redis")

    def fail() -> None:
        raise ZeroDivisionError("nobody has foreseen it")

    stack.memory.pause = fail
    with pytest.raises(ZeroDivisionError):
        stack.levels.put_many([(b"a", Put(b"1"))])
    assert stack.levels.owed == 1
    until(lambda: stack.levels.owed == 0, "it is marked")


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_from_before_does_not_fill_a_server_that_was_started_again_and_has_lost_the_mark(
    build: Build, kind: str
) -> None:
    stack = build(kind, pace=Pace(mark_s=30, fill_s=10, slow_s=10))
    stack.memory.put_many([(b"a", Put(b"old"))])
    reader, go_on = begin_to_read(stack, b"a")
    stack.levels.put_many([(b"a", Put(b"new"))])
    start_again(stack)
    go_on.set()
    reader.join(10)
    assert reader.value == [b"old"]
    assert stack.read(b"a") == [b"new"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("write", ["invalidate", "through"])
def test_a_mark_that_was_lost_while_the_write_was_under_way_is_set_again(build: Build, kind: str, write: str) -> None:
    stack = build(kind, pace=Pace(mark_s=30, fill_s=10, slow_s=10), policies=[{"write": write}])
    stack.memory.put_many([(b"a", Put(b"old"))])
    stack.read(b"a")
    began, go_on = gevent.event.Event(), gevent.event.Event()

    def pause() -> None:
        began.set()
        go_on.wait(10)

    stack.memory.pause = pause
    writer = gevent.spawn(stack.levels.put_many, [(b"a", Put(b"new"))])
    assert began.wait(10)
    stack.memory.pause = lambda: None
    start_again(stack)
    reader, may_fill = begin_to_read(stack, b"a")
    go_on.set()
    writer.join(10)
    may_fill.set()
    reader.join(10)
    assert reader.value == [b"old"]
    assert stack.read(b"a") == [b"new"]


def start_again(stack: Stack) -> None:
    """All servers of the first tier: they come back with nothing, and the tier is connected."""
    for server in stack.servers[0]:
        server.kill()
        server.start()
    until(lambda: stack.read(*KEYS) and all(node.open_lanes() for node in stack.tiers[0].nodes), "connected again")


def test_where_a_key_was_not_before_a_reload_nothing_is_kept_while_others_may_not_mark_it(build: Build) -> None:
    stack = build("redis", pace=Pace(mark_s=30, fill_s=10, slow_s=10))
    old = stack.levels
    level = stack.tiers[0].level
    alone = Level("redis", servers_of(stack.servers[0])[:1], timeout=level.timeout, backoff=level.backoff)
    same, moved = (part.keys for part in sorted(stack.tiers[0].split(KEYS), key=lambda part: part.shard))
    stack.memory.put_many([(key, Put(b"old")) for key in KEYS])
    before = reload(stack, alone, stack.tiers[0].write_back)
    reader, go_on = begin_to_read(stack, moved[0])
    old.put_many([(moved[0], Put(b"new"))])  # of a worker that has not heard of it yet
    go_on.set()
    reader.join(10)
    assert stack.read(moved[0]) == [b"new"]
    stack.fill(same[0])
    assert not isinstance(stack.kept(moved[0]), Item)
    stack.tiers[0].rests_until = monotonic()
    stack.fill(moved[1])
    before.release(None)
