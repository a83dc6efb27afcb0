"""USR2: the program is started anew from where it is installed, on the sockets of this master, and takes its place.

What happens between the two is drawn in heir.py. As long as the new one does not serve, this one goes on as if nothing
was: when the new one ends, says that it can't, or is not ready within `[proxy] upgrade_timeout_s`, it is gone without a
trace but the reason. When it serves, this one lets its clients finish and ends.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from supervisor.between import GoBetween
from supervisor.census import Census
from supervisor.children import Children
from supervisor.current import Current
from supervisor.estate import VARIABLE, leave
from supervisor.exits import explain_failure
from supervisor.fleet import Fleet
from supervisor.herald import Herald
from supervisor.loop import Loop, Timer
from supervisor.pipe import Pipe
from supervisor.reload import Reloader
from supervisor.signals import HANDLED

# An upgrade that is asked for during a reload begins after it.
RETRY_S = 0.1
# How often the new master is told what the workers that drain here have counted.
COUNTERS_S = 1.0
# From the order to take over to the word that it serves.
TAKE_OVER_S = 10.0
# For the last of these messages.
FAREWELL_S = 1.0

UNDER_WAY = "an upgrade is under way"


@dataclass(frozen=True, slots=True)
class UpgradeVerdict:
    """What became of the last upgrade: `at` is in seconds since 1970, `error` why this master goes on, `pid` the other
    master: the one that did not come of it, or the one before this."""

    ok: bool
    at: float
    pid: int
    error: str = ""

    def report(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


class Upgrader:
    """Starts a successor. `last` is what became of the last upgrade, None when there was none; `handed_over` says that
    the successor serves, and `retire` is called then."""

    def __init__(
        self,
        loop: Loop,
        children: Children,
        current: Current,
        fleet: Fleet,
        census: Census,
        reloader: Reloader,
        herald: Herald,
        retire: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._children = children
        self._current = current
        self._fleet = fleet
        self._census = census
        self._reloader = reloader
        self._herald = herald
        self._retire = retire
        self._pipe: Pipe | None = None
        self._timer: Timer | None = None
        self._successor: GoBetween | None = None
        self._farewell = False
        self._reason = ""
        self.pid = 0
        self.handed_over = False
        self.last: UpgradeVerdict | None = None

    def note_success(self, predecessor: int) -> None:
        """This master has taken another's place."""
        self.last = UpgradeVerdict(True, time.time(), predecessor)

    def request(self) -> None:
        """Starts an upgrade."""
        if self.pid or self.handed_over:
            log.warning("upgrade.refused", error=UNDER_WAY)
        elif self._fleet.stopping:
            self._fail("the fleet is stopping")
        elif os.getpid() == 1:
            self._fail("this master is process 1 of its container, which ends with it: start a new container")
        elif self._reloader.busy or self._fleet.held:
            self._loop.later(RETRY_S, self.request)
        else:
            self._start()

    def look(self) -> None:
        """Called once in each turn of the loop: a fleet that stops needs no successor."""
        if self.pid and not self.handed_over and self._fleet.stopping and not self._reason:
            self._give_up("the fleet is stopping")

    def close_in_child(self) -> None:
        """Closes the pipe in a fresh child."""
        if self._pipe is not None:
            self._pipe.close_in_child()

    def farewell(self, turn: Callable[[], None]) -> None:
        """Tells the successor the last counters of all; `turn` lets the loop go round."""
        if self.handed_over and self._pipe is not None:
            self._farewell = True
            self._tell_counters()
            self._pipe.say_end()
            end_s = time.monotonic() + FAREWELL_S
            self._loop.later(FAREWELL_S, lambda: None)
            while self._pipe.open and time.monotonic() < end_s:
                turn()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._successor = self._spawn(theirs.fileno())
        except OSError as error:
            ours.close()
            self._fail(f"cannot start {sys.executable}: {error.strerror}")
            return
        finally:
            theirs.close()
        pid = self.pid = self._successor.pid
        self._reason = ""
        self._pipe = Pipe(self._loop, ours, self._told, self._pipe_ended)
        self._reloader.hold(UNDER_WAY)
        timeout_s = self._current.config.upgrade_timeout_s
        self._give_up_after(timeout_s, f"it was not ready within {timeout_s:g} s")
        log.info("upgrade.started", successor=pid, program=sys.executable)

    def _spawn(self, pipe_fd: int) -> GoBetween:
        """The same words on the same interpreter: what is installed there now. Only the descriptors of the estate stay
        open in it. Raises OSError."""
        estate_fd, fds = leave(self._current, pipe_fd)
        environment = self._herald.environment_of_successor() | {VARIABLE: str(estate_fd)}
        words = [sys.executable, *sys.orig_argv[1:]]

        def spawn() -> int:
            for fd in fds:
                os.set_inheritable(fd, True)
            return os.posix_spawn(sys.executable, words, environment, setsigmask=(), setsigdef=HANDLED)

        try:
            return GoBetween(self._children, spawn, self._ended)
        finally:
            os.close(estate_fd)

    def _told(self, message: Message) -> None:
        if message["type"] == "ready":
            self._census.pull(lambda _silent: self._go())
        elif message["type"] == "failed":
            self._reason = message["error"]
        elif message["type"] == "serving" and self.pid:
            self._hand_over()

    def _go(self) -> None:
        if self._pipe is not None and self.pid and not self._reason:
            self._cancel_timer()  # it is ready in time; from here on it takes over
            self._give_up_after(TAKE_OVER_S, f"it did not take over within {TAKE_OVER_S:g} s")
            self._pipe.send({"type": "go", "counters": self._census.counters()})

    def _hand_over(self) -> None:
        self._cancel_timer()
        self.handed_over = True
        self._current.shared = True
        log.info("upgrade.handed_over", successor=self.pid)
        if self._successor is not None:
            self._successor.give_away()
        self._herald.hand_over(self.pid)
        if self._pipe is not None:
            self._pipe.send({"type": "yours"})
        self._retire()
        self._report()

    def _report(self) -> None:
        if self._pipe is not None and self._pipe.open:
            self._tell_counters()
            self._loop.later(COUNTERS_S, self._report)

    def _tell_counters(self) -> None:
        if self._pipe is not None:
            self._pipe.send({"type": "counters", "counters": self._census.counters()})

    def _give_up_after(self, seconds: float, reason: str) -> None:
        self._timer = self._loop.later(seconds, lambda: self._give_up(reason))

    def _give_up(self, reason: str) -> None:
        self._reason = reason
        if self._successor is not None:
            self._successor.kill()

    def _pipe_ended(self) -> None:
        if self.handed_over and not self._farewell:
            log.error("upgrade.successor_ended", successor=self.pid)

    def _ended(self, status: int) -> None:
        pid, self.pid = self.pid, 0  # Whatever it has said last, it does not serve.
        if self._pipe is not None:
            self._pipe.finish({"type": "leave"})  # It was the process in between that ended, if it can hear this.
            self._pipe = None
        self._cancel_timer()
        self._fail(self._reason or f"it ended before it was ready, with {explain_failure(status)}", pid)
        self._reloader.hold("")

    def _fail(self, error: str, pid: int = 0) -> None:
        self.last = UpgradeVerdict(False, time.time(), pid, error)
        log.error("upgrade.failed", error=error, successor=pid, meaning="this master goes on")

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
