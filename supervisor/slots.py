"""A worker slot: the place of one worker after the other, with its sockets, its cell and its history."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hyper_proxy.common.segment import Cell
from supervisor.pipe import Pipe

# A slot that dies again and again is started less and less often; one that lived this long starts afresh.
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 30.0
HEALTHY_S = 60.0


class SlotState(Enum):
    """What the slot's worker does; shown verbatim in /stats."""

    WAITING = "waiting"  # no worker: the next one starts when the back-off is over
    BOOTING = "booting"  # forked, not serving yet
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"  # no worker and none will come


LIVE = frozenset({SlotState.BOOTING, SlotState.READY, SlotState.DRAINING})


def backoff_s(failures: int) -> float:
    """The pause before the next start after that many deaths in a row (0 = the first one)."""
    return min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2.0 ** min(failures, 16))


@dataclass(slots=True)
class Slot:
    """One slot; changed by the fleet alone. Times are CLOCK_MONOTONIC seconds."""

    index: int
    cell: Cell
    state: SlotState = SlotState.WAITING
    pid: int = 0
    pipe: Pipe | None = None
    generation: int = 0
    born_at_s: float = 0.0
    failures: int = 0
    births: int = 0
    boot_error: str = ""
    last_exit: str = ""
    snapshot: dict[str, Any] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        """Is there a worker?"""
        return self.state in LIVE

    def note_birth(self, pid: int, pipe: Pipe, generation: int) -> None:
        """A worker has been forked."""
        self.state = SlotState.BOOTING
        self.pid, self.pipe, self.generation = pid, pipe, generation
        self.born_at_s = time.monotonic()
        self.births += 1

    def note_death(self, cause: str) -> float:
        """The worker has ended; returns the seconds to wait before the next one."""
        if time.monotonic() - self.born_at_s >= HEALTHY_S:
            self.failures = 0
        delay_s = backoff_s(self.failures)
        self.failures += 1
        self.state = SlotState.WAITING
        self.pid, self.pipe = 0, None
        self.last_exit = cause
        self.snapshot = {}
        self.cell.clear()
        return delay_s
