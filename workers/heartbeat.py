"""The heartbeat: a greenlet that stamps the slot's cell, and whose lateness is the lag of the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent

from hyper_proxy.common.segment import Cell

BEAT_S = 0.25
# The cell shows the worst lateness of the last so many beats, a second: a single long slice must not vanish at once.
_BEATS_SHOWN = 4


class Heartbeat:
    """Beats for ever; every second it also calls `each_second`."""

    def __init__(self, cell: Cell, each_second: Callable[[], None]) -> None:
        self._cell = cell
        self._each_second = each_second
        self._lags_us = [0] * _BEATS_SHOWN

    def run(self) -> None:
        """One beat each BEAT_S."""
        count = 0
        self.beat(count, 0)
        while True:
            count += 1
            # Timers count from the moment at which the loop last looked at the clock: a loop that is late all the time
            # would hide its lateness.
            gevent.get_hub().loop.update_now()
            due_ns = time.monotonic_ns() + int(BEAT_S * 1e9)
            gevent.sleep(BEAT_S)
            self.beat(count, (time.monotonic_ns() - due_ns) // 1000)
            if count % _BEATS_SHOWN == 0:
                self._each_second()

    def beat(self, count: int, lag_us: int) -> None:
        """Stamps the cell."""
        self._lags_us[count % _BEATS_SHOWN] = max(lag_us, 0)
        self._cell.put("beat_ns", time.monotonic_ns())
        self._cell.put("lag_us", max(self._lags_us))
