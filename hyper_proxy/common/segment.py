"""The memory that the master and all workers share: one anonymous mapping, made before the first fork.

Each worker slot owns one cell of 64 bytes, the size of a cache line, so that two workers never write to the same
line. A cell is eight native words of 8 bytes; it has one writer, its worker, and a word is stored by one aligned
copy, so a reader sees either the old or the new value and no lock is needed. A slot's successor inherits the cell.
"""

from __future__ import annotations

import mmap

CELL_BYTES = 64
WORD_BYTES = 8
_WORDS = CELL_BYTES // WORD_BYTES

# The words of a cell: name -> position. A new word takes the next free position; there are eight.
WORDS: dict[str, int] = {
    "beat_ns": 0,  # CLOCK_MONOTONIC of the last heartbeat: the same clock in every process of the machine
    "lag_us": 1,  # the worst lateness of a heartbeat in the last second
    "generation": 2,  # of the configuration that serves
}

_MAX_WORD = (1 << 64) - 1


class Cell:
    """One slot's words, written by its worker and read by the master."""

    __slots__ = ("_words",)

    def __init__(self, words: memoryview) -> None:
        self._words = words

    def put(self, name: str, value: int) -> None:
        """Stores a word: an integer from 0 to 2**64 - 1, larger or smaller ones are cut off at these ends."""
        self._words[WORDS[name]] = min(max(value, 0), _MAX_WORD)

    def get(self, name: str) -> int:
        """The word as it is now."""
        value: int = self._words[WORDS[name]]
        return value

    def clear(self) -> None:
        """Forgets what the slot's previous worker wrote: called by the master while the slot has no worker."""
        for position in range(_WORDS):
            self._words[position] = 0


class Segment:
    """The whole mapping: `cells` of as many slots as the fleet has."""

    def __init__(self, slots: int) -> None:
        self._memory = mmap.mmap(-1, slots * CELL_BYTES)
        words = memoryview(self._memory).cast("Q")
        self.cells = tuple(Cell(words[slot * _WORDS : (slot + 1) * _WORDS]) for slot in range(slots))
