"""What a process tree has used: CPU seconds and resident memory."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def tree(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def cpu_s(pid: int) -> float:
    """User and system time of the whole tree, that of children which have ended included (proc(5): fields 14 to 17)."""
    ticks = 0
    for member in tree(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS_PER_S


def rss_bytes(pid: int) -> int:
    """Resident memory of the whole tree; pages that processes share count once for each."""
    return sum(int(Path(f"/proc/{member}/statm").read_text().split()[1]) for member in tree(pid)) * PAGE_BYTES
