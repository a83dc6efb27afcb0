"""The memory that the master and all workers share: one anonymous mapping, made before the first fork.

Each worker owns one cell of 64 bytes, the size of a cache line, so that two workers never write to the same
line. A cell is eight native words of 8 bytes; it has one writer, its worker, and a word is stored by one aligned
copy, so a reader sees either the old or the new value and no lock is needed. A slot keeps its cell from one worker to
the next; a worker that leaves while its successor serves already has another one.
"""

from __future__ import annotations

import errno
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
    """One worker's words, written by it and read by the master."""

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
    """The whole mapping, which hands out cells. Pages of cells that nobody has had cost nothing."""

    def __init__(self, cells: int) -> None:
        self._memory = mmap.mmap(-1, cells * CELL_BYTES)
        self._words = memoryview(self._memory).cast("Q")
        self._unused = iter(range(cells))
        self._returned: list[Cell] = []

    def take(self) -> Cell:
        """A cell that is all zero. Raises OSError when there is none left."""
        if self._returned:
            return self._returned.pop()
        index = next(self._unused, None)
        if index is None:
            raise OSError(errno.ENOSPC, "no cell is left in the segment")
        return Cell(self._words[index * _WORDS : (index + 1) * _WORDS])

    def give_back(self, cell: Cell) -> None:
        """Called by the master when no process writes to the cell any more."""
        cell.clear()
        self._returned.append(cell)
