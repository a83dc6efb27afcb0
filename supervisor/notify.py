"""What the master tells the service manager that started it: datagrams of KEY=VALUE lines, as sd_notify(3) describes.

The manager names its socket in the environment. Without one nothing is sent, and nothing else changes. Only the master
speaks: every child drops the names from its environment, so that no library in it can say READY for the fleet.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

from hyper_proxy.common import log

ADDRESS = "NOTIFY_SOCKET"
WATCHDOG_PERIOD = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"
VARIABLES = (ADDRESS, WATCHDOG_PERIOD, WATCHDOG_PID)

# A manager that does not read for so long loses the message; the fleet goes on.
SEND_TIMEOUT_S = 1.0

_US = 1_000_000


class Notifier:
    """The way to the service manager of this process; `environment` is where it has left its names."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get(ADDRESS, "")
        self.watchdog_s = _watchdog_s(environment)
        """The manager ends this process when it hears no WATCHDOG=1 for so long; 0: it does not wait for any."""

    def send(self, *assignments: str) -> None:
        """One datagram of these lines. What can't be sent is logged: service is more than its reports."""
        if not self._address:
            return
        # A path, or a name of the abstract namespace, whose first byte is zero and is written as "@".
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(SEND_TIMEOUT_S)
                sock.sendto("\n".join(assignments).encode(), address)
        except OSError as error:
            log.warning("notify.failed", socket=self._address, error=error, message=" ".join(assignments))

    def for_successor(self) -> dict[str, str]:
        """What the environment of a master must have that takes this one's place: without the pid, which is not its
        own, the watchdog is meant for whoever the manager calls the main process."""
        period = {WATCHDOG_PERIOD: str(round(self.watchdog_s * _US))} if self.watchdog_s else {}
        return {ADDRESS: self._address, **period} if self._address else {}


def drop_in_child() -> None:
    """Takes the manager's names out of the environment of a fresh child."""
    for name in VARIABLES:
        os.environ.pop(name, None)


def reloading() -> tuple[str, str]:
    """The beginning of a reload: the manager takes READY=1 for its end only if that comes after this moment of
    CLOCK_MONOTONIC."""
    return "RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}"


def extend_timeout(seconds: float) -> str:
    """Asks for so much time before the manager calls a start or a stop failed."""
    return f"EXTEND_TIMEOUT_USEC={round(seconds * _US)}"


def _watchdog_s(environment: Mapping[str, str]) -> float:
    """0 when the watchdog is off, or belongs to another process."""
    period = environment.get(WATCHDOG_PERIOD, "")
    meant = environment.get(WATCHDOG_PID, "")
    if not period.isdecimal() or (meant and meant != str(os.getpid())):
        return 0.0
    return int(period) / _US
