"""The master's loop: one selector for descriptors, one heap for times. Single-threaded; callbacks must not block."""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import time
from collections.abc import Callable

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Timer:
    """A call that is due later; cancel() makes it never happen."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """May be called at any time, also after the timer fired."""
        self.callback = None


class Loop:
    """Waits for descriptors and times and makes the calls that belong to them."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def add(self, sock: socket.socket | int, on_event: Callable[[int], None]) -> None:
        """Calls on_event(READ | WRITE) whenever the descriptor is readable; see `watch` for writing."""
        self._selector.register(sock, READ, on_event)

    def watch(self, sock: socket.socket | int, events: int) -> None:
        """Changes what is waited for."""
        key = self._selector.get_key(sock)
        if key.events != events:
            self._selector.modify(sock, events, key.data)

    def remove(self, sock: socket.socket | int) -> None:
        """Must be called before the descriptor is closed: a child may still hold it, and then it would go on
        reporting."""
        self._selector.unregister(sock)

    def later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Calls back once after delay_s seconds."""
        timer = Timer(callback)
        heapq.heappush(self._timers, (time.monotonic() + delay_s, next(self._order), timer))
        return timer

    def turn(self) -> None:
        """Waits until something is due and does it."""
        for key, events in self._selector.select(self._patience()):
            # An earlier callback of this turn may have removed this one.
            if self._selector.get_map().get(key.fd) is key:
                key.data(events)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                callback, timer.callback = timer.callback, None
                callback()

    def _patience(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def close(self) -> None:
        """Closes the selector alone; registrations of the parent are not touched when a child does this."""
        self._selector.close()
