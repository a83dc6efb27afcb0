"""Generations of workers: what only a newborn worker can have comes with a new crew on the same sockets.

    prepare: candidates boot, hold, all are ready ──► take_over: they serve, the old crew drains ──► it is gone
             one of them fails ──► all of them end, the crew in force has noticed nothing

A retired crew lets its clients finish for at most `drain_timeout_s`; what is left then is killed. Not more than
MAX_RETIRED of them linger: the next one to come hurries the oldest.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common import log
from supervisor.children import Children
from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.loop import Loop
from supervisor.slots import Slot, SlotState
from supervisor.steering import HANDSHAKE_S
from supervisor.stop import FAST_DRAIN_S, GRACE_S

MAX_RETIRED = 2

Done = Callable[[str], None]
"""Called with "" when the candidates are ready, with the reason when they will never be."""


@dataclass(slots=True, eq=False)
class Retired:
    """A crew that leaves: the generation of its configuration, the workers that are left, and whether it was told to
    make haste."""

    generation: int
    slots: list[Slot]
    hurried: bool = False


class Generations:
    """Replaces the crew in force; `retired` are the crews that leave, oldest first."""

    def __init__(self, loop: Loop, children: Children, fleet: Fleet) -> None:
        self._loop = loop
        self._children = children
        self._fleet = fleet
        self._done: Done | None = None
        self._settled_at_s = 0.0
        self.retired: list[Retired] = []
        fleet.on_ready.append(self._ready)
        fleet.on_death.append(self._ended)

    def prepare(self, plan: Current, done: Done) -> None:
        """Starts candidates for a configuration that is not in force yet; `done` follows, at once or later.

        Not before the sockets of slots that were removed a moment ago are closed: the kernel would count them among
        those that stay.
        """
        self._done = done
        self._loop.later(self._settled_at_s - time.monotonic(), lambda: self._hire(plan))

    def _hire(self, plan: Current) -> None:
        if self._fleet.stopping:
            self._conclude("the fleet is stopping")
            return
        try:
            self._fleet.hire(plan)
        except OSError as error:
            self._conclude(f"cannot start a process: {error.strerror}")

    def take_over(self, drain_s: float) -> None:
        """The candidates serve from now on; the crew that served has `drain_s` to let its clients finish."""
        old = self._fleet.promote()
        if old:
            self.retire(old, drain_s, len(self._fleet.slots))

    def retire(self, slots: list[Slot], drain_s: float, staying: int) -> None:
        """Lets a crew leave. Slots from number `staying` on have sockets that nobody else accepts from: those whose
        handshake is under way are waited for."""
        handshake_s = min(HANDSHAKE_S, drain_s / 2)
        if any(slot.index >= staying for slot in slots):
            self._settled_at_s = time.monotonic() + handshake_s + GRACE_S
        for slot in slots:
            wait_s = handshake_s if slot.index >= staying else 0.0
            self._drain(slot, drain_s - wait_s, wait_s)
        generation = max(slot.generation for slot in slots)
        leaving = Retired(generation, slots)
        self._loop.later(drain_s + GRACE_S, lambda: self._kill(leaving))
        self.retired.append(leaving)
        log.info("generation.retired", retired=generation, workers=len(slots), seconds=drain_s)
        lingering = [crew for crew in self.retired if not crew.hurried]
        newest = sorted({crew.generation for crew in lingering})[-MAX_RETIRED:]
        for crew in lingering:
            if crew.generation not in newest:
                self._hurry(crew)

    def _drain(self, slot: Slot, seconds: float, wait_s: float) -> None:
        if wait_s:
            self._loop.later(wait_s, lambda: self._drain(slot, seconds, 0.0))
        elif slot.state in (SlotState.BOOTING, SlotState.READY):
            self._fleet.drain(slot, seconds)

    def _hurry(self, crew: Retired) -> None:
        log.warning("generation.hurried", retired=crew.generation, workers=len(crew.slots), seconds=FAST_DRAIN_S)
        crew.hurried = True
        for slot in crew.slots:
            self._fleet.send(slot, {"type": "drain", "seconds": FAST_DRAIN_S})
        self._loop.later(FAST_DRAIN_S + GRACE_S, lambda: self._kill(crew))

    def _kill(self, crew: Retired) -> None:
        for slot in crew.slots:
            log.warning("worker.not_drained", slot=slot.index, worker=slot.pid)
            self._children.kill(slot.pid, signal.SIGKILL)

    def _ready(self, slot: Slot) -> None:
        candidates = self._fleet.candidates
        if slot in candidates and all(one.state is SlotState.READY for one in candidates):
            self._conclude("")

    def _ended(self, slot: Slot, _snapshot: dict[str, Any]) -> None:
        if slot in self._fleet.candidates:
            self._fleet.dismiss()
            self._conclude(f"worker {slot.index} of the new generation: {slot.boot_error or slot.last_exit}")
        for crew in [crew for crew in self.retired if slot in crew.slots]:
            crew.slots.remove(slot)
            if not crew.slots:
                self.retired.remove(crew)
                log.info("generation.gone", retired=crew.generation)

    def _conclude(self, error: str) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(error)
