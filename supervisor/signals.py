"""Signals to the master: one row each. A handler only notes the number; everything else happens in the loop.

The wake-up descriptor makes the selector return; the numbers are kept in a set, so that a storm of one signal can
neither fill a buffer nor push another signal out. The signals of one turn are handled in the order of the table.
"""

from __future__ import annotations

import signal
import socket
from dataclasses import dataclass
from types import FrameType


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal and the name of the master's action; IGNORE means that it is ignored. `help` goes to the
    documentation."""

    number: signal.Signals
    action: str
    help: str


IGNORE = "ignore"

SIGNALS: tuple[SignalRow, ...] = (
    SignalRow(signal.SIGCHLD, "reap", "a child ended: note why, start its successor"),
    SignalRow(signal.SIGINT, "stop", "stop fast: within 2 seconds"),
    SignalRow(signal.SIGQUIT, "explain", "each worker writes its Python stack to standard error; then stop fast"),
    SignalRow(signal.SIGTERM, "drain", "stop accepting, let requests finish, exit 0; a second one stops fast"),
    SignalRow(signal.SIGUSR1, "reopen_logs", "open the log files anew"),
    SignalRow(signal.SIGHUP, "reload", "open the log files anew and reload the configuration"),
    SignalRow(signal.SIGPIPE, IGNORE, "ignored"),
    SignalRow(signal.SIGUSR2, "upgrade", "start the program anew on the same sockets; when it serves, drain, exit 0"),
    SignalRow(signal.SIGTTIN, "more", "one worker more, until the next reload"),
    SignalRow(signal.SIGTTOU, "fewer", "one worker less, until the next reload; the last one stays"),
    SignalRow(signal.SIGWINCH, "stand_down", "all workers drain; the master keeps the sockets; HUP brings them back"),
)

# A child ignores what is meant for the master when a whole group is signalled (pkill -HUP, Ctrl-C, TERM by a process
# manager): it is told through its pipe. SIGCHLD goes back to the default, since libraries rely on it.
_CHILD_DEFAULT = frozenset({signal.SIGCHLD})

HANDLED = frozenset(row.number for row in SIGNALS)


class SignalInbox:
    """The signals that have come and were not handled yet; readable for a selector when there are any."""

    def __init__(self) -> None:
        self._pending: set[int] = set()
        self.read_end, self._write_end = socket.socketpair()
        self.read_end.setblocking(False)
        self._write_end.setblocking(False)

    def install(self) -> None:
        """Takes over all signals of the table. Main thread only."""
        signal.set_wakeup_fd(self._write_end.fileno(), warn_on_full_buffer=False)
        for row in SIGNALS:
            signal.signal(row.number, signal.SIG_IGN if row.action == IGNORE else self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending.add(number)

    def take(self) -> list[SignalRow]:
        """The rows of the signals that came since the last call."""
        try:
            while self.read_end.recv(4096):
                pass
        except BlockingIOError:
            pass
        taken: set[int] = set()
        while self._pending:
            taken.add(self._pending.pop())
        return [row for row in SIGNALS if row.number in taken]

    def close(self) -> None:
        """Gives the descriptors back; in a child, after reset_in_child."""
        self.read_end.close()
        self._write_end.close()


def reset_in_child() -> None:
    """Undoes install in a fresh child: nothing of the master's is called any more, the operator's signals are
    ignored."""
    signal.set_wakeup_fd(-1)
    for row in SIGNALS:
        signal.signal(row.number, signal.SIG_DFL if row.number in _CHILD_DEFAULT else signal.SIG_IGN)
