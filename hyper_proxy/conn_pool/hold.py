# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Whether a lane keeps back what is pending until what it has sent is answered.

A server answers a connection's requests in order, so what is kept back meanwhile leaves and returns in fewer, larger
system calls, here and at the server: the idea of RFC 896 (Nagle), one layer up. It costs the wait at most one journey
to the server and back, and never more than HOLD_S (and the event loop's rounding up to its next millisecond), so it is
done only while this process is busy: then calls saved are worth more than the journey.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cython
from gevent import get_hub

from hyper_proxy.common.load import LOAD

if not cython.compiled:
    from hyper_proxy.common.load import Load

HOLD_S = 0.001
HOLD_BYTES = 65536  # more makes a full call anyway


@cython.cclass
class Hold:
    """One lane's. release: called when the time is over and something is still held."""

    held: cython.bint
    timer: Any
    release: Callable[[], None]

    def __init__(self, release: Callable[[], None]) -> None:
        self.release = release
        self.held = False
        self.timer = None

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def begin(self, size: cython.Py_ssize_t, at: cython.double) -> cython.bint:
        """Answers are awaited: are the `size` bytes that are pending at the moment `at` held?"""
        load: Load = LOAD
        if size > HOLD_BYTES or not load.is_busy(at):
            return False
        self.held = True
        if self.timer is None:  # one that an earlier hold has left makes this one shorter
            self.timer = get_hub().loop.timer(HOLD_S)
            self.timer.start(self._on_timer)
        return True

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def end(self) -> cython.bint:
        """Was something held?"""
        held: cython.bint = self.held
        self.held = False
        return held

    def _on_timer(self) -> None:
        self.timer.close()
        self.timer = None
        if self.end():
            self.release()
