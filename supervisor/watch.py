"""Finds children that hang: alive, and without a sign of life for longer than `[proxy] hang_timeout_s`.

A worker's sign of life is the beat of its event loop, in its cell of the segment; the sidecar's comes by its pipe.
Who hangs gets ABRT, at which it writes its Python stack to standard error, and KILL two seconds later.

A worker that boots has no beat yet; it has a deadline of its own (fleet.BOOT_TIMEOUT_S). When the machine or the whole
process group has stood still, every beat is late, and so is the master: what was before counts for nothing then.
"""

from __future__ import annotations

import time
from typing import Protocol

from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.loop import Loop
from supervisor.slots import Slot, SlotState

LOOK_S = 0.5
# A look that is later than this was not delayed by the master's own work, which is short.
LATE_S = 1.0

_BEATING = frozenset({SlotState.READY, SlotState.DRAINING})


class Pulse(Protocol):
    """The sidecar's keeper, as far as it is watched."""

    beat_at_s: float

    def abort(self, why: str) -> None:
        """Ends the sidecar, which hangs."""


class Watch:
    """Looks at all children twice a second."""

    def __init__(self, loop: Loop, current: Current, fleet: Fleet, sidecar: Pulse) -> None:
        self._loop = loop
        self._current = current
        self._fleet = fleet
        self._sidecar = sidecar
        self._looked_at_s = self._awake_since_s = time.monotonic()

    def run(self) -> None:
        """Looks now, and again and again."""
        self.look(time.monotonic())
        self._loop.later(LOOK_S, self.run)

    def look(self, now_s: float) -> None:
        """Aborts who hangs at this moment of CLOCK_MONOTONIC."""
        if now_s - self._looked_at_s > LOOK_S + LATE_S:
            self._awake_since_s = now_s
        self._looked_at_s = now_s
        limit_s = self._current.config.hang_timeout_s
        why = f"no sign of life for {limit_s:g} s"
        for slot in self._fleet.live():
            if slot.state in _BEATING and self._silent_s(now_s, _last_sign_s(slot)) > limit_s:
                self._fleet.abort(slot, why)
        if self._sidecar.beat_at_s and self._silent_s(now_s, self._sidecar.beat_at_s) > limit_s:
            self._sidecar.abort(why)

    def _silent_s(self, now_s: float, sign_at_s: float) -> float:
        return now_s - max(sign_at_s, self._awake_since_s)


def _last_sign_s(slot: Slot) -> float:
    return max(slot.cell.get("beat_ns") / 1e9, slot.ready_at_s)
