"""Greenlets that are used again: every task runs, and one that fails costs only itself."""

from __future__ import annotations

import gevent
import pytest
from gevent.event import Event
from greenlet import getcurrent

from hyper_proxy.common.crew import MOST_IDLE, Crew


def test_one_after_the_other_is_done_by_one_greenlet() -> None:
    crew = Crew()
    who = []
    for number in range(5):
        crew.start(lambda number=number: who.append((number, getcurrent())))
        gevent.idle()
    assert [number for number, _ in who] == [0, 1, 2, 3, 4]
    assert len({greenlet for _, greenlet in who}) == 1


def test_tasks_that_wait_have_a_greenlet_each() -> None:
    crew = Crew()
    go = Event()
    done: list[int] = []

    def task(number: int) -> None:
        go.wait()
        done.append(number)

    for number in range(2 * MOST_IDLE):
        crew.start(task, number)
    gevent.idle()
    assert not done
    go.set()
    gevent.idle()
    assert sorted(done) == list(range(2 * MOST_IDLE))
    assert len(crew.idle) == MOST_IDLE


def test_a_task_that_raises_costs_only_itself(capfd: pytest.CaptureFixture[str]) -> None:
    crew = Crew()
    done: list[int] = []
    crew.start(done.append, 1)
    gevent.idle()
    crew.start(lambda: 1 // 0)
    gevent.idle()
    assert "ZeroDivisionError" in capfd.readouterr().err
    crew.start(done.append, 2)
    gevent.idle()
    assert done == [1, 2]
    assert len(crew.idle) == 1
