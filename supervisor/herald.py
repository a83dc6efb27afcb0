"""Tells the service manager what becomes of the fleet: when it serves, reloads, is degraded and stops.

    READY=1        clients are served by all workers, or by some when each of the others has failed once
    RELOADING=1    a reload begins; READY=1 again after its verdict, whatever that is: the protocol knows no failure
    STOPPING=1     the end was asked for, with the time that it may take
    STATUS=        one line for `systemctl status`, whenever it has changed
    WATCHDOG=1     the loop turns
"""

from __future__ import annotations

import os

from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.loop import Loop
from supervisor.notify import VARIABLES, Notifier, extend_timeout, reloading
from supervisor.reload import Reloader
from supervisor.slots import SlotState
from supervisor.stop import FAST_DRAIN_S, GRACE_S, Stopper
from supervisor.verdict import Verdict

READY = "READY=1"
# The manager ends who is silent for its whole period: two messages in each leave room for one that is late.
BEATS_A_PERIOD = 2
# What the end may take beyond the drain: the last workers are killed, the sidecar is told, descriptors are closed.
STOP_RESERVE_S = 5.0


class Herald:
    """Speaks for one master. `look` is called after each turn of the loop, and sends what has changed in it."""

    def __init__(
        self, loop: Loop, notifier: Notifier, current: Current, fleet: Fleet, reloader: Reloader, stopper: Stopper
    ) -> None:
        self._loop = loop
        self._notifier = notifier
        self._current = current
        self._fleet = fleet
        self._reloader = reloader
        self._stopper = stopper
        self._ready = False
        self._mode = ""
        self._status = ""
        reloader.on_begin.append(self._reload_begins)
        reloader.on_verdict.append(self._reload_ends)

    def start(self) -> None:
        """Begins to feed the watchdog, if the manager keeps one."""
        if self._notifier.watchdog_s:
            self._notifier.send("WATCHDOG=1")
            self._loop.later(self._notifier.watchdog_s / BEATS_A_PERIOD, self.start)

    def look(self) -> None:
        """Sends what is new."""
        mode, status = self._stopper.mode, self.status()
        if mode != self._mode:
            self._mode = mode
            seconds = self._current.config.drain_timeout_s if mode == "draining" else FAST_DRAIN_S
            self._send(status, "STOPPING=1", extend_timeout(seconds + GRACE_S + STOP_RESERVE_S))
        elif not self._ready and not mode and self._serves():
            self._ready = True
            self._send(self.status(), READY)
        elif status != self._status:
            self._send(status)

    def environment_of_successor(self) -> dict[str, str]:
        """The environment of this process for the program that takes its place."""
        own = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        return own | self._notifier.for_successor()

    def hand_over(self, pid: int) -> None:
        """Says who is the main process from now on, and nothing any more."""
        self._notifier.send(f"MAINPID={pid}")
        self._notifier = Notifier({})

    def status(self) -> str:
        """One line: what the fleet does, how many workers serve, and what an operator should look at."""
        slots = self._fleet.slots
        ready = sum(slot.state is SlotState.READY for slot in slots)
        if self._stopper.mode:
            left = len(self._fleet.live())
            return f"{self._stopper.mode}: {left} worker{'s' if left != 1 else ''} left"
        state = "serving" if ready == len(slots) else "degraded" if self._ready else "starting"
        parts = [f"{state}: {ready} of {len(slots)} workers ready", f"generation {self._current.generation}"]
        overrides = self._current.overrides
        if overrides.drained is not None:
            parts.append(f"out of rotation by order of {overrides.drained.who}")
        if overrides.nodes:
            parts.append(f"servers out of service by order: {len(overrides.nodes)}")
        if not self._reloader.last.ok:
            reason, _, _ = self._reloader.last.error.partition("\n")
            parts.append(f"the last reload was REFUSED: {reason}")
        return ", ".join(parts)

    def _serves(self) -> bool:
        slots = self._fleet.slots
        settled = all(slot.state is SlotState.READY or slot.failures for slot in slots)
        return settled and any(slot.state is SlotState.READY for slot in slots)

    def _reload_begins(self) -> None:
        if self._ready and not self._stopper.mode:
            self._notifier.send(*reloading())

    def _reload_ends(self, verdict: Verdict) -> None:
        if self._ready and not self._stopper.mode:
            self._send(self.status(), READY)

    def _send(self, status: str, *assignments: str) -> None:
        self._status = status
        self._notifier.send(*assignments, f"STATUS={status}")
