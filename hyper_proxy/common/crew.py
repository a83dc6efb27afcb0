"""Greenlets that are used again.

A new greenlet gets memory of its own for the frames of Python, mapped and given back by the system, which takes longer
than many a task that it is made for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gevent import get_hub, spawn
from greenlet import getcurrent, greenlet

MOST_IDLE = 64


class Crew:
    """One for the process. A task that raises ends its greenlet, and gevent says so, as for any other."""

    def __init__(self) -> None:
        self.idle: list[greenlet] = []

    def start(self, task: Callable[..., object], *args: Any) -> None:
        """Run the task soon, in a greenlet of its own."""
        if self.idle:
            get_hub().loop.run_callback(self.idle.pop().switch, (task, args))
        else:
            spawn(self._work, task, args)

    def _work(self, task: Any, args: Any) -> None:
        me = getcurrent()
        while True:
            task(*args)
            if len(self.idle) >= MOST_IDLE:
                return
            task = args = None  # what they hold is not kept
            self.idle.append(me)
            task, args = get_hub().switch()


CREW = Crew()
