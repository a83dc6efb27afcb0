"""Forking: what every child of the master does between fork and its own first line, and how it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable

import setproctitle

from supervisor import notify, signals

EXIT_FAILED = 1
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def fork_child(name: str, shed: Callable[[], None], body: Callable[[], int]) -> int:
    """Forks a child that calls shed (closes what it must not keep), then body, and exits with body's result.

    `name` is what ps shows of it from its first moment on: it must not pass for a second master.

    Returns the child's pid in the master; never returns in the child. Raises OSError when the system has no process
    left. Signals are held back around the fork, so that none meets the master's handlers in the child.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    held = signal.pthread_sigmask(signal.SIG_BLOCK, signals.HANDLED)
    master = os.getpid()
    try:
        pid = os.fork()
        if pid == 0:
            _live(name, master, shed, body, held)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    return pid


def _live(
    name: str, master: int, shed: Callable[[], None], body: Callable[[], int], held: set[signal.Signals | int]
) -> None:
    """The child's whole life. os._exit leaves out the master's clean-up, which is below this frame on the stack."""
    code = EXIT_FAILED
    try:
        setproctitle.setproctitle(f"hyper-proxy: {name}")
        die_with(master)
        signals.reset_in_child()
        notify.drop_in_child()
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        shed()
        code = body()
    finally:
        if sys.exception() is not None:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when its parent ends, however that happens; also if it has ended already.

    Linux only, as the whole product. KILL, since a process that hangs could not obey anything else.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(EXIT_FAILED)
