"""Which keys are being written at this moment, in all workers, and which are held while they are copied.

Two writes of one key that are under way at once may reach two rooms in different orders; a key that is written while
it is copied may be replaced by what it was before. Every worker has rows in shared memory, with a cell for each hash of
a key; it alone writes there. A writer counts its key first and looks for holds then; who copies holds the key first
and looks for counts then: one of them sees the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from zlib import crc32

from hyper_proxy.common.board import BOARDS, CELLS


class Overlap:
    """This worker's rows, and the view of all."""

    def __init__(self) -> None:
        self.rows = BOARDS.rows
        if not self.rows.take():
            raise OSError("there are more workers than rows for what they have under way")
        self.counts, self.begun, self.holds = self.rows.own()

    def enter(self, cells: Sequence[int]) -> bool:
        """Write these from now on, if nobody holds one of them; may it?"""
        for cell in cells:
            self.counts[cell] += 1
            self.begun[cell] = self.begun[cell] + 1 & 0xFFFF
        if any(flags[cell] for flags in self.rows.flags() for cell in cells):
            self.leave(cells)
            return False
        return True

    def leave(self, cells: Sequence[int]) -> None:
        """They are written."""
        for cell in cells:
            self.counts[cell] -= 1

    def others(self, cells: Collection[int]) -> tuple[bool, int]:
        """Does another worker write one of them just now? And a number that changes when one begins to."""
        busy, number = False, 0
        for counts, begun in self.rows.of_others():
            for cell in cells:
                busy = busy or counts[cell] > 0
                number += begun[cell]
        return busy, number

    def hold(self, cells: Collection[int]) -> bool:
        """Nobody begins to write these any more; False: one is held already, and so none is by this call."""
        if any(flags[cell] for flags in self.rows.flags() for cell in cells):
            return False
        for cell in cells:
            self.holds[cell] = 1
        return True

    def is_quiet(self, cells: Collection[int]) -> bool:
        """Is nobody writing them any more?"""
        return not any(self.counts[cell] for cell in cells) and not self.others(cells)[0]

    def let_go(self, cells: Collection[int]) -> None:
        """They may be written again."""
        for cell in cells:
            self.holds[cell] = 0


def cell_of(db: int, key: bytes) -> int:
    """Where a key is counted: for all processes in the same cell, those of another master included."""
    return crc32(key, db) % CELLS


@cache
def overlap() -> Overlap:
    """The one of this process. Raises OSError."""
    return Overlap()
