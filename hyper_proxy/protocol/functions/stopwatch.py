"""Ends a call of a plug-in's function that does not come back: the loop of the worker, and with it all clients, waits.

A timer of the system ticks from the first client of such a protocol on. When the same call is found running TICKS times
in a row, and the loop has not turned in between, PluginError is raised inside it. A call that waits for the storage is
not running: another greenlet is. Each greenlet has its own call, so one that has waited is found again, whatever others
have called meanwhile. What never returns to Python, in a library in C, is left to the master's watch of workers
(hang_timeout_s).

A storage may run code of a plug-in in a thread, the `change` of an update, and has its lock, or one of its few threads,
meanwhile. Such a call is ended after the same time, also while it waits in a way that Python can interrupt.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from gevent import get_hub
from gevent.monkey import get_original
from greenlet import getcurrent

from hyper_proxy.common.plugin_error import Owner, PluginError, guarded, place_in

T = TypeVar("T")

TICK_S = 0.25
TICKS = 5
"""A call that has run for more than TICK_S * (TICKS - 1) may be ended; it is at most one tick longer."""
LATE = f"it has not come back within {TICK_S * (TICKS - 1):g} s, and everybody waits for it"

get_native_ident = get_original("_thread", "get_ident")  # of the thread, where gevent's is of a greenlet
allocate_lock = get_original("_thread", "allocate_lock")


class TooLong(BaseException):
    """Raised in a thread whose call of a plug-in's function is ended; of a class that few programs catch."""

    def __str__(self) -> str:
        return LATE


class Apart:
    """A call in a thread. ticks: that it was found running in."""

    def __init__(self) -> None:
        self.ticks = 0


class Stopwatch:
    """One for the process: signals come to its first thread alone, which is that of the event loop."""

    def __init__(self) -> None:
        self._seen: object = None
        self._turn = self._ticks = 0
        self._started = False
        self._loop_thread = 0
        self._apart: dict[int, Apart] = {}  # by thread
        self._lock = allocate_lock()  # who has it knows that a call is still running

    def start(self) -> None:
        """From now on calls are watched. Starting twice is harmless."""
        if not self._started:
            self._started = True
            self._loop: Any = get_hub().loop
            self._loop_thread = get_native_ident()
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

    @property
    def is_apart(self) -> bool:
        """Is this another thread than that of the event loop?"""
        return bool(get_native_ident() != self._loop_thread)

    def run(self, owner: Owner, function: str, call: Callable[..., T], *args: Any) -> T:
        """Call code of a plug-in where a storage wants it, be it in a thread. There whatever it raises, and that it
        does not come back, is PluginError: it must not end what others share."""
        if not self.is_apart:
            return call(*args)
        try:
            return guarded(owner, function, self._run_apart, call, *args)
        finally:
            self._leave()  # for it may have been ended in the moment in which it left by itself

    def _run_apart(self, call: Callable[..., T], *args: Any) -> T:
        with self._lock:
            self._apart[get_native_ident()] = Apart()
        try:
            return call(*args)
        finally:
            self._leave()

    def _leave(self) -> None:
        me = get_native_ident()
        with self._lock:
            if self._apart.pop(me, None) is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(me), None)  # takes back what has not come yet

    def _end_those_apart(self) -> None:
        if not self._apart or not self._lock.acquire(False):
            return
        try:
            for thread, call in self._apart.items():
                call.ticks += 1
                if call.ticks % TICKS == 0:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooLong))
        finally:
            self._lock.release()

    def _tick(self, number: int, frame: FrameType | None) -> None:
        self._end_those_apart()
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
            raise PluginError(owner, function, LATE, place_in(frame, owner))


STOPWATCH = Stopwatch()
