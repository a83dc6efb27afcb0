# cython: language_level=3, annotation_typing=False
"""Who asks below for a key: one worker of the machine, and the others wait for what it brings.

A lease is a lock of the system on one byte of an empty file in memory, which the master makes before its first fork;
the byte's place is a hash of the key. The system gives back the locks of a process that has ended, and the place is one
of 2**62, so that hardly two keys ever share it. To the system it belongs to a process, not to a greenlet: `held` knows
what this one has. (fcntl(2), record locks. Closing any descriptor of the file would give back all: it stays open.)

Beside it stands in shared memory when a copy was last put above, by a shorter hash: whoever gets a lease may have
looked for the copy before that, and looks once more. Words are 8 bytes that are stored by one aligned copy; of two
writers the last one wins, and two keys that share a word cost a look too many.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from enum import Enum
from time import monotonic_ns

WORDS = 1 << 18  # of the times; the pages of those that nobody has had cost nothing
MOST_HELD = 256  # by one worker: the system looks through all that others have, one by one
RECENT_S = 2.0  # whoever finds nothing above learns so late at most that he has; he may have many to serve before

_PLACES = (1 << 62) - 1
_LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB


class Grant(Enum):
    """What became of the wish for a lease."""

    MINE = "to be given back"
    NONE = "go on without one: there are none, or this process holds many"
    TAKEN = "somebody else has it, here or in another process"


class Leases:
    """One for the process. Until `share` nobody else is there, and every wish ends in Grant.NONE."""

    def __init__(self) -> None:
        self._fd = -1
        self._times = memoryview(b"")
        self.held: set[int] = set()

    def share(self) -> None:
        """From now on with all processes that will be forked from this one."""
        if self._fd < 0:
            self._fd = os.memfd_create("leases")
            self._times = memoryview(mmap.mmap(-1, WORDS * 8)).cast("Q")

    def place(self, *name: str | int | bytes) -> int:
        """Where the lease of this name is. Python's hashes are alike in processes that were forked from one."""
        return hash(name) & _PLACES

    def take(self, place: int) -> Grant:
        """Try to get a lease; does not wait."""
        if self._fd < 0:
            return Grant.NONE
        if place in self.held:
            return Grant.TAKEN
        if len(self.held) >= MOST_HELD:
            return Grant.NONE
        if not self._lock(place):
            return Grant.TAKEN
        self.held.add(place)
        return Grant.MINE

    def give_back(self, place: int, filled: bool) -> None:
        """Let others have it; filled: there is a copy above now."""
        if filled:
            self._times[place % WORDS] = monotonic_ns()
        self.held.discard(place)
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, place)

    def is_taken(self, place: int) -> bool:
        """Does anybody have it?"""
        if place in self.held:
            return True
        if self._fd < 0:
            return False
        if not self._lock(place):
            return True
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, place)
        return False

    def was_filled(self, place: int) -> bool:
        """Was a copy put above a moment ago? Of another key, perhaps."""
        return self._fd >= 0 and self._times[place % WORDS] > monotonic_ns() - int(RECENT_S * 1e9)

    def _lock(self, place: int) -> bool:
        try:
            fcntl.lockf(self._fd, _LOCK, 1, place)
        except (BlockingIOError, PermissionError):  # fcntl(2): EAGAIN or EACCES, as the system likes
            return False
        return True


LEASES = Leases()
