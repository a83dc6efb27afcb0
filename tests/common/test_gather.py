"""One greenlet waits for many replies, once."""

from __future__ import annotations

from types import ModuleType

import gevent
import pytest

from tests.kit.plain import both

GATHER = "hyper_proxy.common.gather"


@both(GATHER)
def test_nothing_to_wait_for(module: ModuleType) -> None:
    gather = module.Gather()
    gather.wait()
    gather.add(b"known")
    gather.wait()
    assert gather.slots == [b"known"]


@both(GATHER)
def test_replies_that_come_before_the_wait(module: ModuleType) -> None:
    gather = module.Gather()
    positions = [gather.expect() for _ in range(3)]
    for position in reversed(positions):
        gather.deliver(position, b"%d" % position)
    gather.wait()
    assert gather.slots == [b"0", b"1", b"2"]
    assert not gather.failed


@both(GATHER)
def test_the_last_reply_ends_the_wait_whatever_the_order(module: ModuleType) -> None:
    gather = module.Gather()
    for position in range(5):
        assert gather.expect() == position
    order = [3, 0, 4, 1, 2]
    left = []

    def deliver(position: int) -> None:
        left.append(gather.left)
        gather.deliver(position, b"%d" % position)

    for position in order:
        gevent.get_hub().loop.run_callback(deliver, position)
    gather.wait()
    assert gather.slots == [b"0", b"1", b"2", b"3", b"4"]
    assert left == [5, 4, 3, 2, 1]


@both(GATHER)
def test_errors_fill_slots_and_are_remembered_until_the_reset(module: ModuleType) -> None:
    gather = module.Gather()
    gather.expect()
    gather.add(b"known")
    gather.expect()
    fault = OSError()
    gevent.get_hub().loop.run_callback(gather.fail, 2, fault)
    gevent.get_hub().loop.run_callback(gather.deliver, 0, b"a")
    gather.wait()
    assert gather.slots == [b"a", b"known", fault]
    assert gather.failed
    gather.reset()
    assert (gather.slots, gather.failed, gather.left) == ([], False, 0)


@both(GATHER)
def test_one_gather_is_used_over_and_over(module: ModuleType) -> None:
    gather = module.Gather()
    loop = gevent.get_hub().loop
    for turn in range(100):
        for position in range(turn % 4):
            loop.run_callback(gather.deliver, gather.expect(), b"%d" % position)
        gather.wait()
        assert gather.slots == [b"%d" % position for position in range(turn % 4)]
        gather.reset()


@both(GATHER)
@pytest.mark.parametrize("waiters", [1, 50])
def test_every_waiter_gets_its_own(module: ModuleType, waiters: int) -> None:
    gathers = {}

    def body(number: int) -> list[bytes]:
        gather = gathers[number] = module.Gather()
        for _ in range(3):
            gather.expect()
        gather.wait()
        return list(gather.slots)

    jobs = [gevent.spawn(body, number) for number in range(waiters)]
    gevent.idle()  # until all of them wait
    for position in (2, 0, 1):
        for number in range(waiters):
            gevent.get_hub().loop.run_callback(gathers[number].deliver, position, b"%d/%d" % (number, position))
    gevent.joinall(jobs, timeout=5, raise_error=True)
    assert [job.value for job in jobs] == [[b"%d/%d" % (n, p) for p in range(3)] for n in range(waiters)]


@both(GATHER)
def test_a_greenlet_that_fills_the_last_slot_goes_on_itself(module: ModuleType) -> None:
    gather = module.Gather()
    gather.expect()
    went_on = []

    def fill() -> None:
        gather.deliver(0, b"reply")
        went_on.append(True)

    filler = gevent.spawn(fill)
    gather.wait()
    assert gather.slots == [b"reply"]
    filler.join(1)
    assert went_on == [True]
