"""What a process tree has used: CPU seconds and resident memory."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def tree(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def cpu_s(pid: int) -> float:
    """Time on a CPU of all threads of the whole tree, as the scheduler counts it in nanoseconds.

    User and system time of /proc/PID/stat are sampled at clock ticks: what works in bursts between them was seen to be
    charged a third of its time. Children that ended in between are not counted; none does in a run.
    """
    nanoseconds = 0
    for member in tree(pid):
        for thread in Path(f"/proc/{member}/task").iterdir():
            nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def rss_bytes(pid: int) -> int:
    """Resident memory of the whole tree; pages that processes share count once for each."""
    return sum(int(Path(f"/proc/{member}/statm").read_text().split()[1]) for member in tree(pid)) * PAGE_BYTES
