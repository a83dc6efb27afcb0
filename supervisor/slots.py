"""A worker slot: the place of one worker after the other, with its sockets, its cell and its history."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hyper_proxy.common.segment import Cell
from supervisor.exits import Exit
from supervisor.pipe import Pipe

# A slot that dies again and again is started less and less often; one that lived this long starts afresh.
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 30.0
HEALTHY_S = 60.0
# So many deaths within so long put a slot into quarantine: its next worker comes after that pause.
LOOP_DEATHS = 5
LOOP_WINDOW_S = 60.0
QUARANTINE_S = 30.0


class SlotState(Enum):
    """What the slot's worker does; shown verbatim in /stats."""

    WAITING = "waiting"  # no worker: the next one starts when the back-off is over
    QUARANTINED = "quarantined"  # the same after too many deaths
    BOOTING = "booting"  # forked, not serving yet
    READY = "ready"
    HUNG = "hung"  # its heart has stopped; it is being killed
    DRAINING = "draining"
    STOPPED = "stopped"  # no worker and none will come by itself


LIVE = frozenset({SlotState.BOOTING, SlotState.READY, SlotState.HUNG, SlotState.DRAINING})


def backoff_s(failures: int) -> float:
    """The pause before the next start after that many deaths in a row (0 = the first one)."""
    return min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(failures, 16))


@dataclass(slots=True, eq=False)
class Slot:
    """One slot; changed by the fleet alone. Times are CLOCK_MONOTONIC seconds.

    A worker that drains while its place goes on, or is given up, keeps its record (`leaving`); the place gets another
    one (`successor`). `unwanted`: it is told to drain as soon as it is born. `adopted_by` is the slot whose worker
    accepts for this one.
    """

    index: int
    cell: Cell
    state: SlotState = SlotState.WAITING
    pid: int = 0
    pipe: Pipe | None = None
    generation: int = 0
    born_at_s: float = 0.0
    ready_at_s: float = 0.0
    leaving: bool = False
    unwanted: bool = False
    adopted_by: int | None = None
    failures: int = 0
    births: int = 0
    restarts: int = 0
    boot_error: str = ""
    blame: str = ""
    exit: Exit | None = None
    deaths: deque[float] = field(default_factory=lambda: deque(maxlen=LOOP_DEATHS))
    snapshot: dict[str, Any] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        """Is there a worker?"""
        return self.state in LIVE

    @property
    def last_exit(self) -> str:
        """How the slot's last worker has ended, and why, in words; "" when none has."""
        return self.exit.text if self.exit else ""

    def successor(self, cell: Cell) -> Slot:
        """A record without a worker for the same place, with the place's history; this one stays with its worker."""
        return Slot(
            self.index,
            cell,
            failures=self.failures,
            restarts=self.restarts,
            exit=self.exit,
            deaths=self.deaths,
        )

    def note_birth(self, pid: int, pipe: Pipe, generation: int) -> None:
        """A worker has been forked."""
        self.state = SlotState.BOOTING
        self.pid, self.pipe, self.generation = pid, pipe, generation
        self.born_at_s = time.monotonic()
        self.boot_error = self.blame = ""
        self.restarts += self.births > 0
        self.births += 1

    def note_ready(self) -> None:
        """The worker serves."""
        self.state = SlotState.READY
        self.ready_at_s = time.monotonic()

    def note_death(self, end: Exit) -> float:
        """The worker has ended; returns the seconds to wait before the next one."""
        now = time.monotonic()
        if now - self.born_at_s >= HEALTHY_S:
            self.failures = 0
        delay_s = backoff_s(self.failures)
        self.failures += 1
        self.deaths.append(now)
        self.state = SlotState.WAITING
        if len(self.deaths) == LOOP_DEATHS and now - self.deaths[0] <= LOOP_WINDOW_S:
            self.state, delay_s = SlotState.QUARANTINED, max(delay_s, QUARANTINE_S)
        self.pid, self.pipe = 0, None
        self.exit = end
        self.snapshot = {}
        self.cell.clear()
        return delay_s
