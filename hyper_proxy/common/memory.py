"""How much memory this process has, how much it may have, and whether that is too much by now.

Nothing is ever killed for it. Whoever would take much more asks `is_short` first; the pressure of entry/pressure.py
does the rest.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic

TRIM_PAUSE_S = 0.2  # after a trim that has brought less than this share of the limit
TRIM_SHARE = 0.05
LOOK_EVERY_S = 0.005  # a look is a system call of some microseconds
MACHINE_SHARE = 0.5  # of the machine or container is the default for all workers: the rest is for the servers and files
LEAST_BYTES = 128 << 20  # a worker may always have: without clients it takes a third of this

_statm = os.open("/proc/self/statm", os.O_RDONLY)  # kept open: without descriptors the figures must still be there
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Hands to the system what is free: the C library keeps much of it in the middle of its heap. Only glibc has it.
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def rss_bytes() -> int:
    """Resident memory of this process."""
    return int(os.pread(_statm, 256, 0).split()[1]) * _PAGE


def machine_bytes() -> int:
    """The memory of the machine, or that of the control group (container, systemd's MemoryMax=) if it is less."""
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE
    return min([total, *_group_limits()])


def _group_limits() -> list[int]:
    """memory.max of the control group (version 2) and of all above it, as far as this process can see them."""
    limits = []
    root = Path("/sys/fs/cgroup")
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                group = root / line[3:].strip("/")
                for folder in (group, *group.parents):
                    limits += _number(folder / "memory.max")
    return limits + _number(root / "memory/memory.limit_in_bytes")


def _number(path: Path) -> list[int]:
    with suppress(OSError, ValueError):  # the file is not there, or it says "max"
        return [int(path.read_text())]
    return []


class Memory:
    """One for the process. limit: bytes above which it is short; dropped: replies that there was no memory for."""

    def __init__(self) -> None:
        self.limit = 0
        self.used = 0
        self.dropped = 0
        self.looked_at = 0.0
        self.trim_after = 0.0

    def allow(self, fleet: int, workers: int) -> None:
        """Have an equal part of what all workers may have; 0: of MACHINE_SHARE of the machine."""
        self.limit = max(LEAST_BYTES, (fleet or int(machine_bytes() * MACHINE_SHARE)) // workers)

    def is_short(self) -> bool:
        """Is it more than it may be, or was it a moment ago? What is only kept for later use does not count."""
        now = monotonic()
        if now - self.looked_at < LOOK_EVERY_S:
            return self.used > self.limit > 0
        self.looked_at = now
        self.used = rss_bytes()
        if self.used > self.limit > 0 and now > self.trim_after and _trim is not None:
            before = self.used
            _trim(0)
            self.used = rss_bytes()
            if before - self.used < TRIM_SHARE * self.limit:
                self.trim_after = now + TRIM_PAUSE_S
        return self.used > self.limit > 0


MEMORY = Memory()
