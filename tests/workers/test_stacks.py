"""What is said of the greenlets of a worker."""

from __future__ import annotations

import gevent
from gevent.event import Event

from workers.stacks import MOST, describe_greenlets


def wait_here(event: Event) -> None:
    event.wait()


def test_greenlets_that_wait_in_the_same_line_are_counted_together() -> None:
    event = Event()
    waiting = [gevent.spawn(wait_here, event) for _ in range(7)]
    gevent.idle()
    text = describe_greenlets()
    event.set()
    gevent.joinall(waiting)
    (stack,) = [part for part in text.split("\n\n") if "in wait_here" in part]
    assert "7 x\n" in stack


def test_a_crowd_is_looked_at_in_part_and_that_is_said() -> None:
    event = Event()
    waiting = [gevent.spawn(wait_here, event) for _ in range(MOST + 5)]
    gevent.idle()
    text = describe_greenlets()
    event.set()
    gevent.joinall(waiting)
    assert "more greenlets were not looked at" in text
