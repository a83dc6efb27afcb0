"""Which slots there are, and of which crew; each has a cell of the shared memory as long as it is on the list."""

from __future__ import annotations

from hyper_proxy.common.segment import Segment
from supervisor.slots import Slot, SlotState

# Each worker has a cell of 64 bytes: 1024 slots, their candidates, and as many retired workers as may linger.
MAX_CELLS = 8 * 1024


class Roster:
    """`slots` are those in force. Beside them there may be `candidates`, a new crew that gets ready and serves nobody
    yet, and `retired` workers of older crews, which let their clients finish (supervisor/generations.py).

    A slot of each may have the same number, and then shares its listening sockets; slots are told apart by identity.
    """

    def __init__(self, count: int) -> None:
        self._segment = Segment(MAX_CELLS)
        self.slots = self._places(0, count)
        self.candidates: list[Slot] = []
        self.retired: list[Slot] = []

    def everyone(self) -> list[Slot]:
        """The slots in force, the candidates', and those of older crews."""
        return [*self.slots, *self.candidates, *self.retired]

    def live(self) -> list[Slot]:
        """The slots that have a worker, of whatever crew."""
        return [slot for slot in self.everyone() if slot.live]

    def members(self) -> list[Slot]:
        """The slots whose worker serves or is about to: those that take part in a reload."""
        return [slot for slot in self.slots if slot.state in (SlotState.BOOTING, SlotState.READY)]

    def nominate(self, count: int) -> list[Slot]:
        """As many candidates."""
        self.candidates = self._places(0, count)
        return self.candidates

    def relieve(self) -> list[Slot]:
        """The candidates take the place of the crew in force, whose live slots are the result."""
        old, self.slots, self.candidates = self.slots, self.candidates, []
        for before, after in zip(old, self.slots, strict=False):
            after.restarts, after.exit = before.restarts, before.exit
        for slot in old:
            self._retire(slot)
        return [slot for slot in old if slot.live]

    def withdraw(self) -> list[Slot]:
        """There are no candidates any more; those that are live are the result."""
        leaving, self.candidates = self.candidates, []
        for slot in leaving:
            self._retire(slot)
        return [slot for slot in leaving if slot.live]

    def append(self) -> Slot:
        """One slot more, at the end."""
        (slot,) = self._places(len(self.slots), 1)
        self.slots.append(slot)
        return slot

    def remove_slot(self) -> Slot:
        """Gives up the last slot. Its worker serves on, as a retired one, until it is told to drain."""
        slot = self.slots.pop()
        self._retire(slot)
        return slot

    def empty_slot(self, slot: Slot) -> None:
        """The slot's worker goes on as a retired one; the slot itself has none, until somebody starts it."""
        fresh = slot.successor(self._segment.take())
        fresh.state = SlotState.STOPPED
        self.slots[slot.index] = fresh
        self._retire(slot)

    def strike(self, slot: Slot) -> None:
        """The worker of a slot has ended: only one in force may have another."""
        for crew in (self.candidates, self.retired):
            if slot in crew:
                crew.remove(slot)
                self._segment.give_back(slot.cell)

    def _places(self, first: int, count: int) -> list[Slot]:
        return [Slot(index, self._segment.take()) for index in range(first, first + count)]

    def _retire(self, slot: Slot) -> None:
        slot.leaving = True
        if slot.live:
            self.retired.append(slot)
        else:
            slot.state = SlotState.STOPPED
            self._segment.give_back(slot.cell)
