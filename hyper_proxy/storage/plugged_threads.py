"""The loops of the threads in which storages of plug-ins run: they can wait for programs, too.

What waits in such a thread (time.sleep, a socket, subprocess) does so in a loop of its own, for the workers are patched
by gevent. gevent waits for programs in the loop of the process' first thread alone, by SIGCHLD. Here a descriptor of
the process tells its end: pidfd_open(2), Linux 5.3.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import gevent
from gevent.hub import get_hub
from gevent.monkey import get_original

waitpid = get_original("os", "waitpid")
LOST = 255 << 8
"""The status of a program of which somebody else was told: not that of success."""
_READABLE = 1


class Child:
    """Watches a program: what gevent's own watcher of one thread offers to subprocess and os.waitpid."""

    def __init__(self, loop: Any, pid: int) -> None:
        self.loop = loop
        self.pid = self.rpid = pid
        self.rstatus = 0
        self._ends = os.pidfd_open(pid)
        self._watcher = loop.io(self._ends, _READABLE)

    def start(self, callback: Callable[..., object], *args: object) -> None:
        """Call it when the program has ended, and rstatus is its status."""
        self._watcher.start(self._ended, callback, args)

    def _ended(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            _, self.rstatus = waitpid(self.pid, 0)
        except ChildProcessError:
            self.rstatus = LOST
        callback(*args)

    def stop(self) -> None:
        """Call nobody any more."""
        self._watcher.stop()

    def close(self) -> None:
        """Give the descriptor back; closing twice is harmless."""
        if self._ends >= 0:
            self._watcher.close()
            os.close(self._ends)
            self._ends = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def use_loops() -> None:
    """Threads that begin from now on have such loops. The one that calls this keeps its own."""
    get_hub()
    if getattr(gevent.config.loop, "waits_for_programs", False):
        return

    loop: Any = gevent.config.loop  # the one of several that gevent uses here

    class ThreadLoop(loop):
        waits_for_programs = True

        def child(self, pid: int, trace: int = 0, ref: bool = True) -> Child:
            """gevent's name of it."""
            return Child(self, pid)

        def install_sigchld(self) -> None:
            """Nothing: the signal would make the first thread's loop take the status of every program."""

    gevent.config.loop = ThreadLoop
