"""Questions to workers: sent to all or one, answers gathered, with a deadline for those that say nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hyper_proxy.common.frames import Message
from supervisor.fleet import Fleet
from supervisor.loop import Loop, Timer
from supervisor.slots import Slot, SlotState

# A worker answers between two requests; one that is silent for so long is busy with something, or hangs.
ANSWER_TIMEOUT_S = 1.0


@dataclass(slots=True)
class Errand:
    """One question: `said` are the answers with their slots, `silent` the slots that did not answer in time."""

    done: Callable[[Errand], None]
    waiting: list[Slot] = field(default_factory=list)
    said: list[tuple[Slot, dict[str, Any]]] = field(default_factory=list)
    silent: list[Slot] = field(default_factory=list)
    timer: Timer | None = None

    @property
    def error(self) -> str:
        """What the first worker said that could not do it; "" when there is none."""
        return next((f"worker {slot.index}: {data['error']}" for slot, data in self.said if "error" in data), "")


class Errands:
    """Asks the workers (workers/actions.py answers)."""

    def __init__(self, loop: Loop, fleet: Fleet) -> None:
        self._loop = loop
        self._fleet = fleet
        self._errands: dict[int, Errand] = {}
        self._number = 0
        fleet.routes["reply"] = self._reply
        fleet.on_death.append(self._missing)

    def ask(self, slots: list[Slot], verb: str, args: dict[str, Any], done: Callable[[Errand], None]) -> None:
        """Sends a question to the workers of these slots; done(errand) follows at once or later.

        A worker that is still booting reads it when it serves; its answer is not waited for.
        """
        self._number += 1
        number = self._number
        errand = Errand(done)
        for slot in slots:
            if not self._fleet.send(slot, {"type": "command", "id": number, "verb": verb, "args": args}):
                errand.silent.append(slot)
            elif slot.state is not SlotState.BOOTING:
                errand.waiting.append(slot)
        if errand.waiting:
            self._errands[number] = errand
            errand.timer = self._loop.later(ANSWER_TIMEOUT_S, lambda: self._close(number))
        else:
            done(errand)

    def _reply(self, slot: Slot, message: Message) -> None:
        errand = self._errands.get(message["id"])
        if errand is not None and slot in errand.waiting:
            errand.said.append((slot, message["data"]))
            self._strike(message["id"], slot)

    def _missing(self, slot: Slot, _snapshot: dict[str, Any]) -> None:
        for number in [number for number, errand in self._errands.items() if slot in errand.waiting]:
            self._strike(number, slot)

    def _strike(self, number: int, slot: Slot) -> None:
        errand = self._errands[number]
        errand.waiting.remove(slot)
        if not errand.waiting:
            self._close(number)

    def _close(self, number: int) -> None:
        errand = self._errands.pop(number)
        if errand.timer is not None:
            errand.timer.cancel()
        errand.silent += errand.waiting
        errand.done(errand)
