"""One question below for all workers of a machine: leases, those who wait for them, and holders that die or hang."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import gevent
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.leases import LEASES, Grant, Leases
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.tunnel.tier import Pace
from tests.conn_pool.conftest import turn, until
from tests.tunnel import test_races
from tests.tunnel.conftest import Build, Stack

PLACE = 12345


class Holder:
    """Another process, which has a lease; it was forked from this one, as workers are from the master."""

    def __init__(self, leases: Leases, place: int) -> None:
        held, tell_held = os.pipe()
        go_on, tell_go_on = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(tell_go_on)
            granted = leases.take(place)
            os.write(tell_held, b"y" if granted is Grant.MINE else b"n")
            filled = os.read(go_on, 1) == b"f"
            leases.give_back(place, filled)
            os.write(tell_held, b"e")
            os.read(go_on, 1)
            os._exit(0)
        for end in (tell_held, go_on):
            os.close(end)
        self.told, self.tell = held, tell_go_on
        assert os.read(held, 1) == b"y"

    def give_back(self, *, filled: bool) -> None:
        """Return when it has done so."""
        os.write(self.tell, b"f" if filled else b"-")
        assert os.read(self.told, 1) == b"e"

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.tell)
        os.close(self.told)
        self.pid = 0


@contextmanager
def holder(leases: Leases, place: int) -> Iterator[Holder]:
    one = Holder(leases, place)
    try:
        yield one
    finally:
        if one.pid:
            one.end()


@pytest.fixture
def leases() -> Leases:
    shared = Leases()
    shared.share()
    return shared


def test_one_process_has_it_and_the_others_see_that(leases: Leases) -> None:
    with holder(leases, PLACE) as other:
        assert leases.take(PLACE) is Grant.TAKEN
        assert leases.is_taken(PLACE)
        assert leases.take(PLACE + 1) is Grant.MINE
        other.give_back(filled=False)
        assert not leases.is_taken(PLACE)
        assert leases.take(PLACE) is Grant.MINE
        assert leases.take(PLACE) is Grant.TAKEN  # by another greenlet, for all one knows
        assert leases.is_taken(PLACE)
        leases.give_back(PLACE, filled=False)
        assert leases.take(PLACE) is Grant.MINE


def test_looking_at_a_lease_of_ones_own_does_not_give_it_back(leases: Leases) -> None:
    leases.take(PLACE)
    assert leases.is_taken(PLACE)
    pid = os.fork()
    if pid == 0:
        leases.held.clear()  # that was the parent's
        os._exit(0 if leases.is_taken(PLACE) else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_the_lease_of_a_process_that_is_killed_is_free(leases: Leases) -> None:
    with holder(leases, PLACE) as other:
        other.end()
        assert leases.take(PLACE) is Grant.MINE


def test_all_learn_when_a_copy_was_put_above(leases: Leases) -> None:
    with holder(leases, PLACE) as other:
        assert not leases.was_filled(PLACE)
        other.give_back(filled=True)
        assert leases.was_filled(PLACE)
        assert not leases.was_filled(PLACE + 1)


def test_a_process_holds_only_so_many(leases: Leases) -> None:
    grants = [leases.take(place) for place in range(300)]
    assert grants == [Grant.MINE] * 256 + [Grant.NONE] * 44


def test_alone_there_are_none() -> None:
    alone = Leases()
    assert alone.take(PLACE) is Grant.NONE
    assert not alone.is_taken(PLACE) and not alone.was_filled(PLACE)


# ---- readers of levels


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, build: Build) -> Callable[..., Stack]:
    """`shared(kind)`: levels in a process that shares leases with others."""
    fresh = Leases()
    fresh.share()
    for name in ("_fd", "_times", "held"):
        monkeypatch.setattr(LEASES, name, getattr(fresh, name))
    return build


def place_of(key: bytes) -> int:
    return LEASES.place("user", 0, key)


def test_who_finds_another_worker_asking_waits_for_its_copy(shared: Build) -> None:
    stack = shared("redis", pace=Pace(mark_s=30, fill_s=10))
    stack.memory.put_many([(b"a", Put(b"below")), (b"b", Put(b"2"))])
    stack.read(b"nothing")
    with holder(LEASES, place_of(b"a")) as other:
        reader = gevent.spawn(stack.read, b"a", b"b")
        stack.wait_kept(b"b")  # what nobody else asks for is not held up
        assert b"a" not in stack.memory.asked and not reader.ready()
        (part,) = stack.tiers[0].split([b"a"])
        stack.tiers[0].fill(part.shard, [(b"a", Item(b"of the other", 0, None, 0))], monotonic())
        stack.wait_kept(b"a")
        other.give_back(filled=True)
        reader.join(10)
        assert reader.value == [b"of the other", b"2"]
        assert b"a" not in stack.memory.asked


def test_when_the_other_worker_dies_the_question_is_asked(shared: Build) -> None:
    stack = shared("redis", pace=Pace(mark_s=30, fill_s=10))
    stack.memory.put_many([(b"a", Put(b"below"))])
    with holder(LEASES, place_of(b"a")) as other:
        reader = gevent.spawn(stack.read, b"a")
        until(lambda: stack.is_answered() and stack.tiers[0].nodes, "it is missed")
        other.end()
        reader.join(10)
        assert reader.value == [b"below"]
    stack.wait_kept(b"a")


def test_a_worker_that_hangs_is_waited_for_only_so_long(shared: Build) -> None:
    stack = shared("redis", pace=Pace(mark_s=3, fill_s=0.2))
    stack.memory.put_many([(b"a", Put(b"below"))])
    stack.read(b"b")
    with holder(LEASES, place_of(b"a")) as other:
        os.kill(other.pid, signal.SIGSTOP)
        began = monotonic()
        assert stack.read(b"a") == [b"below"]
        assert 0.2 <= monotonic() - began < 2
        stack.fill(b"a")


def test_who_found_a_mark_waits_for_nobody(shared: Build) -> None:
    stack = shared("redis", pace=Pace(mark_s=30, fill_s=10))
    with holder(LEASES, place_of(b"a")):
        stack.levels.put_many([(b"a", Put(b"new"))])
        reader = gevent.spawn(stack.read, b"a")
        reader.join(10)
        assert reader.value == [b"new"]


def test_who_missed_a_copy_that_came_meanwhile_looks_for_it_again(shared: Build) -> None:
    stack = shared("redis", pace=Pace(mark_s=30, fill_s=10))
    stack.memory.put_many([(b"a", Put(b"1"))])
    stack.fill(b"a")
    until(lambda: LEASES.was_filled(place_of(b"a")), "the copy is acknowledged")
    stack.memory.asked.clear()
    (part,) = stack.tiers[0].split([b"a"])
    assert stack.levels.complete(part, [None]) == [Item(b"1", 0, None, 0)]
    assert stack.memory.asked == []


@pytest.mark.parametrize("way", ["found", "absent", "failed", "slow"])
def test_a_lease_is_given_back_however_the_question_ends(shared: Build, way: str) -> None:
    stack = shared("redis", pace=Pace(mark_s=3, fill_s=0.02) if way == "slow" else Pace(mark_s=30, fill_s=10))
    if way != "absent":
        stack.memory.put_many([(b"a", Put(b"1"))])

    def pause() -> None:
        turn(0.05 if way == "slow" else 0)
        if way == "failed":
            raise BackendError("user", "memory", "timeout", "no answer")

    stack.memory.pause = pause
    with suppress(BackendError):
        stack.read(b"a")
    until(lambda: not LEASES.held, "it is given back")
    with holder(LEASES, place_of(b"a")):
        assert stack.memory.asked == [b"a"]


@pytest.mark.parametrize("write", ["invalidate", "through"])
def test_no_reader_is_shown_an_older_value_where_leases_are_shared(shared: Build, write: str) -> None:
    """Those who wait for a lease, and look above again, meet marks, fills and copies in every order, too."""
    test_races.test_ten_thousand_interleavings_show_no_reader_an_older_value(shared, "redis", write, 7)
    until(lambda: not LEASES.held, "all are given back")
