# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What lanes have gathered in a turn of the event loop leaves at its end: one callback of the loop for all lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import cython
from gevent import get_hub

from hyper_proxy.common.load import LOAD

if not cython.compiled:
    from hyper_proxy.common.load import Load


@cython.cclass
class Flushed:
    """Base of what has something to send."""

    @cython.cfunc
    def flush(self) -> None:
        """Send it."""
        raise NotImplementedError


@cython.cclass
class Flusher:
    """One for each event loop: see flusher()."""

    due: list
    spare: list  # for what comes while those in `due` are flushed
    loop: Any
    callback: Callable[[], None]

    def __init__(self, loop: Any) -> None:
        self.due = []
        self.spare = []
        self.loop = loop
        self.callback = self._run

    @cython.cfunc
    def add(self, what: Flushed) -> None:
        """Call its flush() once, when everything is done that the event loop has found to do."""
        if not self.due:
            self.loop.run_callback(self.callback)
        self.due.append(what)

    def _run(self) -> None:
        due: list = self.due
        done: cython.Py_ssize_t = 0
        what: Flushed
        load: Load = LOAD
        self.due, self.spare = self.spare, due
        try:
            for what in due:
                done += 1
                what.flush()
        finally:
            while done < len(due):  # a fault of one is not the others'
                self.add(due[done])
                done += 1
            due.clear()
        load.give_way()


_flushers: WeakKeyDictionary[Any, Flusher] = WeakKeyDictionary()


def flusher() -> Flusher:
    """That of this thread's event loop."""
    hub = get_hub()
    found = _flushers.get(hub)
    if found is None:
        found = _flushers[hub] = Flusher(hub.loop)
    return found
