# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The one rendezvous of the proxy: a greenlet asks many servers, then waits once for all of them.

A slot holds one reply, in the order in which the greenlet asked: bytes as the server sent them, or the BackendError
that came instead. Whoever fills the last open slot switches straight into the waiting greenlet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cython
from gevent import get_hub
from greenlet import getcurrent, greenlet

from hyper_proxy.common.errors import BackendError


@cython.cclass
class Gather:
    """What one greenlet, the one that makes it, waits on; used again for its next requests after `reset`."""

    slots: list  # of bytes, BackendError, or None while the slot is open
    left: cython.Py_ssize_t  # slots that are still open
    failed: cython.bint  # is a BackendError among the slots?
    waiting: cython.bint
    hub: Any
    switch_in: Callable[[], object]
    switch_out: Callable[[], object]

    def __init__(self) -> None:
        self.slots = []
        self.left = 0
        self.failed = False
        self.waiting = False
        self.hub = get_hub()
        self.switch_in = getcurrent().switch
        # greenlet's own method: gevent's would look for a hook of the greenlet that is left, and none has one here.
        self.switch_out = greenlet.switch.__get__(self.hub)

    @cython.ccall
    def expect(self) -> cython.Py_ssize_t:
        """Open a slot; its position is what the server's connection gives back to `deliver`."""
        self.slots.append(None)
        self.left += 1
        return len(self.slots) - 1

    @cython.ccall
    def add(self, reply: bytes) -> None:
        """A slot whose reply is known already."""
        self.slots.append(reply)

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        """Fill a slot."""
        self.slots[position] = reply
        self.left -= 1
        if self.left == 0:
            self.complete()

    @cython.cfunc
    def complete(self) -> None:
        """The last open slot is filled."""
        self.wake()

    @cython.cfunc
    def wake(self) -> None:
        if self.waiting:
            self.waiting = False
            if getcurrent() is self.hub:
                self.switch_in()
            else:  # another greenlet's: whoever switches from there is not switched back to
                self.hub.loop.run_callback(self.switch_in)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        """Fill a slot with a BackendError."""
        self.failed = True
        self.deliver(position, error)

    @cython.ccall
    def wait(self) -> None:
        """Return when no slot is open."""
        if self.left:
            self.waiting = True
            self.switch_out()

    @cython.ccall
    def reset(self) -> None:
        """Forget the slots; only when none is open."""
        self.slots = []
        self.failed = False
