"""Generation cells: by them the workers of a machine tell each other which keys have been written.

A cell is one word of 8 bytes in memory that all workers share; the cell of a key is chosen by a hash of the key alone,
so whatever instance writes it, all see it. In it stands a token, which nobody has ever put there before: the time in
steps of 4096 ns, the process, and whether the write is under way. A word is stored by one aligned copy, so a reader
sees one token or another one, and two that are equal mean that nobody has written any key of the cell in between.

Two writers of one cell at once: whoever ends finds another token than his own, and leaves one that says "under way" in
any case. Nobody clears that; it is not believed any longer when it is older than BUSY_NS, as that of a worker that was
killed in the middle of a write.

The memory is an anonymous file, which a master hands on to the one that takes its place: while the old workers let
their clients finish, all have the same cells.
"""

from __future__ import annotations

import mmap
import os
from time import monotonic_ns
from zlib import crc32

WORDS = 1 << 16
BUSY_NS = 2_000_000_000

_MASK = WORDS - 1
_STEP = 1 << 12
_PROCESSES = 0x7FF
_BUSY = 1


class Cells:
    """One for the process. Until `share` they are its own; `fd` is the file, -1 when there is none."""

    def __init__(self) -> None:
        self.fd = -1
        self.words = memoryview(bytearray(WORDS * 8)).cast("Q")
        self._last = 0

    def share(self, fd: int = -1) -> None:
        """From now on with all processes that will be forked from this one, and with those that have this file already.

        Sharing again changes nothing.
        """
        if self.fd >= 0:
            return
        self.fd = fd if fd >= 0 else os.memfd_create("cells")
        os.set_inheritable(self.fd, False)
        if os.fstat(self.fd).st_size < WORDS * 8:
            os.ftruncate(self.fd, WORDS * 8)
        self.words = memoryview(mmap.mmap(self.fd, WORDS * 8)).cast("Q")

    @staticmethod
    def of(key: bytes) -> int:
        """The number of the key's cell."""
        return crc32(key) & _MASK

    def begin(self, cell: int) -> int:
        """A write is about to go out; the result is for `end`."""
        token = self.words[cell] = self._token() | _BUSY
        return token

    def end(self, cell: int, token: int) -> None:
        """It is done, and what was written is what is read from now on."""
        alone = self.words[cell] == token
        self.words[cell] = self._token() | (0 if alone else _BUSY)

    def disturb(self, cell: int) -> None:
        """It may have been done, or be done in a moment: nobody knows."""
        self.words[cell] = self._token() | _BUSY

    def disturb_all(self) -> None:
        """Every key may have been written."""
        for cell in range(WORDS):
            self.disturb(cell)

    def is_busy(self, token: int) -> bool:
        """Was a write under way when this token was read, a moment ago?"""
        return bool(token & _BUSY) and monotonic_ns() - token < BUSY_NS

    def _token(self) -> int:
        """One that nobody has had, not busy."""
        moment = max(monotonic_ns() & -_STEP, self._last + _STEP)
        self._last = moment
        return moment | (os.getpid() & _PROCESSES) << 1


CELLS = Cells()
