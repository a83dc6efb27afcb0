"""How a child of the master has ended: what waitpid says, and what is known beside it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from hyper_proxy.common.errors import WHERE_TRACEBACKS_ARE

FAILED = 1  # that of Python for an exception which nobody has caught


def explain_exit(status: int) -> str:
    """A wait status in words: "exit code 3", "signal KILL (possibly out of memory)"."""
    name = signal_name(status)
    if not name:
        return f"exit code {os.waitstatus_to_exitcode(status)}"
    return f"signal {name}" + (" (possibly out of memory)" if name == "KILL" else "")


def explain_failure(status: int) -> str:
    """The same of a process that has not said why it could not begin."""
    if os.WIFEXITED(status) and os.waitstatus_to_exitcode(status) == FAILED:
        return f"{explain_exit(status)}: its traceback is {WHERE_TRACEBACKS_ARE}"
    return explain_exit(status)


def signal_name(status: int) -> str:
    """The signal that ended the process, without SIG; "" when it exited by itself."""
    number = -os.waitstatus_to_exitcode(status)
    if number <= 0:
        return ""
    return signal.Signals(number).name.removeprefix("SIG") if number in set(signal.Signals) else str(number)


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of one process. `status` is None when the system refused to start it; `error` is what it said itself, why
    the master has ended it, or what the system said; "" when unknown."""

    status: int | None
    error: str
    uptime_s: float
    at: float = field(default_factory=time.time)

    @property
    def cause(self) -> str:
        """In words. A KILL that the master has sent is no sign of a lack of memory."""
        if self.status is None:
            return f"fork: {self.error}"
        name = signal_name(self.status)
        return f"signal {name}" if name and self.error else explain_exit(self.status)

    @property
    def text(self) -> str:
        """In one line, with the error if there is one."""
        return f"{self.cause}: {self.error.splitlines()[0]}" if self.error and self.status is not None else self.cause

    def report(self) -> dict[str, Any]:
        """As /stats shows it: `code` is null after a signal or a failed fork, `signal` is "" after an exit."""
        name = "" if self.status is None else signal_name(self.status)
        return {
            "code": None if name or self.status is None else os.waitstatus_to_exitcode(self.status),
            "signal": name,
            "error": self.error,
            "uptime_s": round(self.uptime_s, 3),
            "at": self.at,
        }
