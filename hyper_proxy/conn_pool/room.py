# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Who waits until a lane has room for more requests: back-pressure on its clients, greenlet by greenlet."""

from __future__ import annotations

import cython
from gevent.event import Event


@cython.cclass
class Room:
    """One lane's. Empty, it is false: opening it then costs nothing."""

    def __init__(self) -> None:
        self.waiting: list = []  # of events

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def wait(self, seconds: float) -> bool:
        """Wait until it opens, at most so long: has it?"""
        event = Event()
        self.waiting.append(event)
        if event.wait(seconds) or event not in self.waiting:
            return True
        self.waiting.remove(event)
        return False

    def open(self) -> None:
        """Wake all that wait; the first of them may fill the lane again."""
        waiting, self.waiting = self.waiting, []
        for event in waiting:
            event.set()
