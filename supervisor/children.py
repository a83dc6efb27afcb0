"""The processes that the master has forked, and what to do when one of them ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from hyper_proxy.common import log
from supervisor.exits import explain_exit
from supervisor.spawn import fork_child


class Children:
    """Forks, reaps and kills; a pid is known from its fork until it was reaped, so a signal never meets a stranger."""

    def __init__(self) -> None:
        self._on_exit: dict[int, Callable[[int], None]] = {}

    def fork(self, name: str, shed: Callable[[], None], body: Callable[[], int], on_exit: Callable[[int], None]) -> int:
        """Forks (see fork_child); on_exit(status) is called from `reap` with the wait status. Raises OSError."""
        pid = fork_child(name, shed, body)
        self._on_exit[pid] = on_exit
        return pid

    def adopt(self, pid: int, on_exit: Callable[[int], None]) -> None:
        """A child that was not forked here; the same as after `fork`."""
        self._on_exit[pid] = on_exit

    def reap(self) -> None:
        """Takes the exit status of every child that has ended. As pid 1 of a container there are unknown ones too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            on_exit = self._on_exit.pop(pid, None)
            if on_exit is None:
                log.debug("child.unknown", child=pid, cause=explain_exit(status))
            else:
                on_exit(status)

    def has(self, pid: int) -> bool:
        """Is this a child that was not reaped yet?"""
        return pid in self._on_exit

    def dismiss(self, pid: int) -> None:
        """Ends a child at once, and waits for that; its on_exit is not called."""
        if self._on_exit.pop(pid, None) is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def kill(self, pid: int, number: signal.Signals) -> None:
        """Sends a signal to a child; nothing happens when it has been reaped."""
        if pid in self._on_exit:
            os.kill(pid, number)
