"""The log of a worker: a bounded queue, emptied by one greenlet through a thread: a slow disk delays no request.

All that touches the disk runs in the thread: writing, and opening the file anew or another one.
"""

from __future__ import annotations

from collections import deque
from time import monotonic

import gevent
from gevent.event import Event

from hyper_proxy.common import log
from hyper_proxy.common.log import LogFile, lost_line

# Lines and bytes that may wait for the disk; further lines are dropped, and how many were is said as soon as there is
# room.
MAX_LINES = 10_000
MAX_BYTES = 16 * 1024 * 1024

# The thread is not woken again sooner than this, for it and the event loop take turns at the interpreter: that costs
# far more than a line. A line after a pause, or many lines, do not wait.
GATHER_S = 0.05
MANY_LINES = 500


class QueueSink:
    """Takes lines at once; `write_all` is the greenlet that writes them. `lost` counts the lines that were dropped."""

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.lost = 0
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._wake = Event()
        self._hurry = Event()
        self._empty = Event()
        self._untold = 0
        self._wanted = ""
        self._must_open = False

    def put(self, line: bytes) -> None:
        """Queues one line, or counts it as lost when the queue is full."""
        if len(self._lines) >= MAX_LINES or self._bytes + len(line) > MAX_BYTES:
            self._lose(1)
            return
        self._lines.append(line)
        self._bytes += len(line)
        self._empty.clear()
        self._wake.set()
        if len(self._lines) == MANY_LINES:
            self._hurry.set()

    def write_all(self) -> None:
        """Writes what is queued, for ever."""
        threads = gevent.get_hub().threadpool
        written_at = 0.0
        while True:
            self._wake.clear()
            while self._lines or self._must_open:
                if self._must_open:
                    self._open()
                batch = list(self._lines)
                self._lines.clear()
                self._bytes = 0
                unwritten = threads.apply(_write_lines, (self.file, batch))
                self._lose(unwritten)
                self._tell_lost(unwritten)
                written_at = monotonic()
            self._empty.set()
            self._wake.wait()
            if (left := written_at + GATHER_S - monotonic()) > 0:
                self._hurry.wait(left)
            self._hurry.clear()

    def move_to(self, path: str) -> None:
        """Writes to another file from the next batch on, or to the same one, opened anew; not in the middle of a batch,
        which a thread may be writing. "" is standard error."""
        self._wanted, self._must_open = path, True
        self._empty.clear()
        self._wake.set()

    @property
    def path(self) -> str:
        """The file that lines go to from the next batch on."""
        return self._wanted if self._must_open else self.file.path

    def reopen(self) -> None:
        """Opens that file anew, after it was renamed."""
        self.move_to(self.path)

    def flush(self, seconds: float) -> bool:
        """Waits until all lines are written, at most so long; False when they are not."""
        self._hurry.set()
        return bool(self._empty.wait(seconds))

    def _open(self) -> None:
        """What can't be opened leaves the log where it is, which says so."""
        threads, self._must_open = gevent.get_hub().threadpool, False
        old, path = self.file, self._wanted
        try:
            if path == old.path:
                threads.apply(old.reopen)
            else:
                self.file = threads.apply(LogFile, (path,))
                threads.apply(old.close)
        except OSError as error:
            log.error("log.not_opened", file=path, error=error)

    def _lose(self, lines: int) -> None:
        self.lost += lines
        self._untold += lines

    def _tell_lost(self, unwritten: int) -> None:
        if self._untold and not unwritten:
            self._lines.append(lost_line(self._untold))
            self._untold = 0


def _write_lines(file: LogFile, lines: list[bytes]) -> int:
    """Runs in a thread. One write per line, so that lines of several processes do not mix; returns how many failed."""
    return sum(not file.write(line) for line in lines)
