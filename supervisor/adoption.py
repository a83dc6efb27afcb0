"""Slots whose worker can't accept for a while: a healthy neighbour does it on their sockets; nobody waits there.

    worker hangs, or its successor is long in coming ──► adopt: a neighbour accepts there, too
    the slot's own worker is ready again             ──► give_back: the neighbour empties the queue and lets go

What has to be is worked out anew at every change and twice a second; a neighbour that dies itself is replaced by
another in the same way. Only sockets of one slot alone are handed over: a unix path is everybody's already.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hyper_proxy.common import log
from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.loop import Loop
from supervisor.slots import Slot, SlotState

LOOK_S = 0.5
# A successor that comes sooner finds the queue in time.
PATIENCE_S = 1.0

_ABSENT = frozenset({SlotState.WAITING, SlotState.QUARANTINED, SlotState.BOOTING})


@dataclass(frozen=True, slots=True)
class _Adopted:
    slot: Slot
    by: Slot
    pid: int
    generation: int


class Adoption:
    """Keeps every socket of the fleet served as long as one worker is healthy, and says so when none is."""

    def __init__(self, loop: Loop, current: Current, fleet: Fleet) -> None:
        self._loop = loop
        self._current = current
        self._fleet = fleet
        self._adopted: dict[int, _Adopted] = {}
        self._absent_since_s: dict[int, float] = {}
        self._degraded = False
        fleet.on_change.append(self.settle)

    def run(self) -> None:
        """Looks now, and again and again."""
        self.settle()
        self._loop.later(LOOK_S, self.run)

    def see_off(self, staying: int, seconds: float) -> None:
        """The slots from this number on are about to be given up. Neighbours accept who is in their queues, too, for so
        long: their own workers may hang, or end before they have emptied them."""
        healthy = [slot for slot in self._healthy() if slot.index < staying]
        for slot in self._fleet.slots[staying:]:
            self._see_off(slot, healthy, seconds)

    def _see_off(self, slot: Slot, healthy: list[Slot], seconds: float) -> None:
        adopted = self._adopted.pop(slot.index, None)
        if adopted is not None and adopted.by in healthy and self._serves(adopted):
            by = adopted.by
        elif healthy and self._send(slot, by := self._choose(healthy, slot)):
            log.info("slot.adopted", slot=slot.index, state="given up", by=by.index)
        else:
            log.warning("slot.not_adopted", slot=slot.index, meaning="no neighbour can take the clients who wait there")
            return
        last = _Adopted(slot, by, by.pid, self._current.generation)
        self._loop.later(seconds, lambda: self._tell_back(last))

    def settle(self) -> None:
        """Brings who accepts where in line with who can."""
        if self._fleet.stopping or self._fleet.held or not self._fleet.serving:
            return
        slots, now_s, healthy = self._fleet.slots, time.monotonic(), self._healthy()
        self._say_health(bool(healthy) or all(slot.state is SlotState.STOPPED for slot in slots))
        orphans = {slot.index: slot for slot in slots if self._is_orphan(slot, now_s)}
        for index, adopted in list(self._adopted.items()):
            if not self._is_good(adopted, orphans.get(index)):
                self._give_back(adopted)
        for slot in orphans.values():
            if slot.index not in self._adopted and healthy:
                self._adopt(slot, self._choose(healthy, slot))

    def _healthy(self) -> list[Slot]:
        return [slot for slot in self._fleet.slots if slot.state is SlotState.READY]

    def _is_orphan(self, slot: Slot, now_s: float) -> bool:
        if slot.state is SlotState.HUNG:
            return True
        if slot.state not in _ABSENT:
            self._absent_since_s.pop(slot.index, None)
            return False
        since_s = self._absent_since_s.setdefault(slot.index, now_s)
        return slot.state is SlotState.QUARANTINED or slot.index in self._adopted or now_s - since_s > PATIENCE_S

    def _is_good(self, adopted: _Adopted, orphan: Slot | None) -> bool:
        return orphan is adopted.slot and self._serves(adopted) and adopted.generation == self._current.generation

    def _serves(self, adopted: _Adopted) -> bool:
        by = adopted.by
        return by in self._fleet.slots and (by.state, by.pid) == (SlotState.READY, adopted.pid)

    def _choose(self, healthy: list[Slot], orphan: Slot) -> Slot:
        """The one with the fewest adopted slots, of those the next number."""

        def burden(one: Slot) -> tuple[int, int]:
            others = sum(adopted.by is one for adopted in self._adopted.values())
            return others, (one.index - orphan.index) % (max(orphan.index, len(self._fleet.slots)) + 1)

        return min(healthy, key=burden)

    def _adopt(self, slot: Slot, by: Slot) -> None:
        if self._send(slot, by):
            self._adopted[slot.index] = _Adopted(slot, by, by.pid, self._current.generation)
            slot.adopted_by = by.index
            log.warning("slot.adopted", slot=slot.index, state=slot.state.value, by=by.index)

    def _send(self, slot: Slot, by: Slot) -> bool:
        """False when there was nothing to send, or the neighbour is too far behind to hear of all of it."""
        sent = [
            self._fleet.send(by, {"type": "adopt", "slot": slot.index, "instance": wish.instance}, (sock.fileno(),))
            for wish, sock in self._current.of(slot.index)
            if not wish.listen.path
        ]
        return bool(sent) and all(sent)

    def _give_back(self, adopted: _Adopted) -> None:
        del self._adopted[adopted.slot.index]
        adopted.slot.adopted_by = None
        self._tell_back(adopted)

    def _tell_back(self, adopted: _Adopted) -> None:
        if adopted.by.pid == adopted.pid:
            self._fleet.send(adopted.by, {"type": "give_back", "slot": adopted.slot.index})
            log.info("slot.given_back", slot=adopted.slot.index, by=adopted.by.index)

    def _say_health(self, healthy: bool) -> None:
        if self._degraded is healthy:
            self._degraded = not healthy
            if healthy:
                log.info("fleet.recovered")
            else:
                log.error("fleet.down", meaning="no worker is ready: clients wait in the queues")
