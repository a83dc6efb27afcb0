"""Starts a program through a process in between, so that it can be given away.

A service manager learns of the end of its own children only. systemd takes a main process that is somebody else's
child for one that it can't wait for: `systemctl stop` would send it TERM and, in the same instant, KILL. When the
process in between ends, its child becomes the service manager's, and only then is it made the main process.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

from supervisor.children import Children
from supervisor.spawn import fork_child

_NUMBER_BYTES = 32


class GoBetween:
    """The parent of the program that `spawn` starts: `pid` is the program's. It ends as the program does, which is when
    on_exit(status) is called; until `give_away` it is killed with the master.

    Raises OSError when the system refuses a process, or what spawn raises of that kind.
    """

    def __init__(self, children: Children, spawn: Callable[[], int], on_exit: Callable[[int], None]) -> None:
        self._children = children
        answers, answering = os.pipe()
        try:
            try:
                self._parent = fork_child("starting a successor", lambda: None, lambda: _live(spawn, answering))
            finally:
                os.close(answering)
            self.pid = int(os.read(answers, _NUMBER_BYTES) or -errno.ECHILD)
        finally:
            os.close(answers)
        if self.pid < 0:
            os.waitpid(self._parent, 0)
            raise OSError(-self.pid, os.strerror(-self.pid))
        children.adopt(self._parent, on_exit)

    def kill(self) -> None:
        """Ends the program; nothing happens when it has ended."""
        if self._children.has(self._parent):
            os.kill(self.pid, signal.SIGKILL)

    def give_away(self) -> None:
        """Steps aside: the program is the child of the service manager from here on, and on_exit is not called any
        more."""
        self._children.dismiss(self._parent)


def _live(spawn: Callable[[], int], answering: int) -> int:
    """The life of the process in between; it ends with the exit code or by the signal of the program."""
    try:
        pid = spawn()
    except OSError as error:
        os.write(answering, b"%d" % -(error.errno or errno.EIO))
        return 1
    os.write(answering, b"%d" % pid)
    os.close(answering)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
