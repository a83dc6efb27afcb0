"""Ends a call of a plug-in's function that does not come back: the loop of the worker, and with it all clients, waits.

A timer of the system ticks from the first client of such a protocol on. When the same call is found running TICKS times
in a row, and the loop has not turned in between, PluginError is raised inside it. A call that waits for the storage is
not running: another greenlet is. Each greenlet has its own call, so one that has waited is found again, whatever others
have called meanwhile. What never returns to Python, in a library in C, is left to the master's watch of workers
(hang_timeout_s).
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from gevent import get_hub
from greenlet import getcurrent

from hyper_proxy.common.plugin_error import Owner, PluginError, place_in

TICK_S = 0.25
TICKS = 5
"""A call that has run for more than TICK_S * (TICKS - 1) may be ended; it is at most one tick longer."""


class Stopwatch:
    """One for the process: signals come to its first thread alone, which is that of the event loop."""

    def __init__(self) -> None:
        self._seen: object = None
        self._turn = self._ticks = 0
        self._started = False

    def start(self) -> None:
        """From now on calls are watched. Starting twice is harmless."""
        if not self._started:
            self._started = True
            self._loop: Any = get_hub().loop
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)

    def begin(self, owner: Owner, function: str) -> None:
        """This greenlet calls a function of a plug-in."""
        me: Any = getcurrent()
        me.watched = (owner, function)

    def end(self) -> None:
        """It is back."""
        me: Any = getcurrent()
        me.watched = None

    def _tick(self, number: int, frame: FrameType | None) -> None:
        call: tuple[Owner, str] | None = getattr(getcurrent(), "watched", None)
        turn: int = self._loop.iteration
        if call is None or call is not self._seen or turn != self._turn:
            self._seen, self._turn, self._ticks = call, turn, 0
        if call is None:
            return
        self._ticks += 1
        if self._ticks >= TICKS:
            self._ticks = 0
            owner, function = call
            reason = f"it has not come back within {TICK_S * (TICKS - 1):g} s, and everybody waits for it"
            raise PluginError(owner, function, reason, place_in(frame, owner))


STOPWATCH = Stopwatch()
