"""Counters: each worker pushes a snapshot every second and answers when asked; what the dead had counted is kept.

The master does not look into snapshots; it adds up those of ended workers (hyper_proxy.stats.merge) and hands all on
to the sidecar, which merges and shows them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.frames import Message
from hyper_proxy.stats.merge import merge, retire
from supervisor.fleet import Fleet
from supervisor.loop import Loop, Timer
from supervisor.slots import LIVE, Slot, SlotState

Snapshot = dict[str, Any]

# Whoever asks for /stats waits at most so long for a busy worker; its last pushed snapshot stands in for the answer.
PULL_TIMEOUT_S = 0.5


@dataclass(slots=True)
class _Pull:
    waiting: set[Slot]
    done: Callable[[list[int]], None]
    timer: Timer


class Census:
    """Snapshots of the living by slot (in the slots), the sum of the dead in `retired`, and in `left` what a
    predecessor has counted up to an upgrade, and its draining workers since."""

    def __init__(self, loop: Loop, fleet: Fleet) -> None:
        self._loop = loop
        self._fleet = fleet
        self.retired: Snapshot = {}
        self.left: Snapshot = {}
        self._pulls: dict[int, _Pull] = {}
        self._number = 0
        fleet.routes.update(snapshot=self._snapshot, gone=self._snapshot)
        fleet.on_death.append(self._bury)

    def pull(self, done: Callable[[list[int]], None]) -> None:
        """Asks every serving worker for a fresh snapshot; done(silent slots) is called when all have answered or time
        is up."""
        self._number += 1
        number = self._number
        asked = {
            slot
            for slot in self._fleet.everyone()
            if slot.state in LIVE
            and slot.state is not SlotState.BOOTING
            and self._fleet.send(slot, {"type": "snapshot", "id": number})
        }
        if not asked:
            done([])
            return
        timer = self._loop.later(PULL_TIMEOUT_S, lambda: self._close(number))
        self._pulls[number] = _Pull(asked, done, timer)

    def workers(self) -> list[dict[str, Any]]:
        """One row per slot: who is there, since when, and how it is."""
        return [_row(slot) | slot.snapshot.get("worker", {}) for slot in self._fleet.slots]

    def leaving(self) -> list[dict[str, Any]]:
        """One row per worker of an older generation, or of a slot that was given up, which lets its clients finish."""
        return [_row(slot) | slot.snapshot.get("worker", {}) for slot in self._fleet.retired]

    def snapshots(self) -> list[dict[str, Any]]:
        """The newest snapshot of each living worker, and whose it is: one that has retired has no slot any more."""
        current = [(slot.index, slot) for slot in self._fleet.slots]
        retired = [(None, slot) for slot in self._fleet.retired]
        return [
            {"slot": index, "pid": slot.pid, "data": slot.snapshot}
            for index, slot in (*current, *retired)
            if slot.snapshot
        ]

    def ended(self) -> Snapshot:
        """What was counted by workers that this master does not have, or has not any more."""
        return merge([self.retired, self.left])

    def counters(self) -> Snapshot:
        """All that was ever counted: what a successor goes on from."""
        living = [retire(slot.snapshot) for slot in self._fleet.everyone() if slot.snapshot]
        return merge([self.retired, self.left, *living])

    def _snapshot(self, slot: Slot, message: Message) -> None:
        slot.snapshot = message["data"]
        number = message.get("id", 0)
        if number in self._pulls:
            self._answered(number, slot)

    def _answered(self, number: int, slot: Slot) -> None:
        pull = self._pulls[number]
        pull.waiting.discard(slot)
        if not pull.waiting:
            self._close(number)

    def _close(self, number: int) -> None:
        pull = self._pulls.pop(number)
        pull.timer.cancel()
        pull.done(sorted({slot.index for slot in pull.waiting}))

    def _bury(self, slot: Slot, snapshot: Snapshot) -> None:
        if snapshot:
            # Counters live on, gauges (clients, queues) die with the worker.
            self.retired = merge([self.retired, retire(snapshot)])
        for number in list(self._pulls):
            if slot in self._pulls[number].waiting:
                self._answered(number, slot)


def _row(slot: Slot) -> dict[str, Any]:
    now_s, now_ns = time.monotonic(), time.monotonic_ns()
    beat_ns = slot.cell.get("beat_ns")
    return {
        "slot": slot.index,
        "pid": slot.pid,
        "generation": slot.generation,
        "state": slot.state.value,
        "uptime_s": round(now_s - slot.born_at_s, 3) if slot.live else 0.0,
        "restarts": slot.restarts,
        "last_exit": slot.last_exit,
        "adopted_by": slot.adopted_by,
        "exit": slot.exit.report() if slot.exit else None,
        "beat_age_s": round((now_ns - beat_ns) / 1e9, 3) if beat_ns else None,
        "loop_lag_s": slot.cell.get("lag_us") / 1e6,
    }
