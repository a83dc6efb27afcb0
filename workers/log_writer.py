"""The log of a worker: a bounded queue, emptied by one greenlet through a thread: a slow disk delays no request."""

from __future__ import annotations

import os
import time
from collections import deque

import gevent
from gevent.event import Event

from hyper_proxy.common.log import LogFile, format_line

# Lines that may wait for the disk; further ones are dropped, and how many were is said as soon as there is room.
MAX_LINES = 10_000


class QueueSink:
    """Takes lines at once; `write_all` is the greenlet that writes them."""

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self._lines: deque[bytes] = deque()
        self._wake = Event()
        self._empty = Event()
        self._lost = 0
        self._next: LogFile | None = None

    def put(self, line: bytes) -> None:
        """Queues one line, or counts it as lost when the queue is full."""
        if len(self._lines) >= MAX_LINES:
            self._lost += 1
            return
        self._lines.append(line)
        self._empty.clear()
        self._wake.set()

    def write_all(self) -> None:
        """Writes what is queued, for ever."""
        threads = gevent.get_hub().threadpool
        while True:
            while self._lines:
                self._change_file()
                batch = list(self._lines)
                self._lines.clear()
                unwritten = threads.apply(_write_lines, (self.file.fd, batch))
                self._lost += unwritten
                self._report_lost(unwritten)
            self._change_file()
            self._empty.set()
            self._wake.wait()
            self._wake.clear()

    def move_to(self, file: LogFile) -> None:
        """Writes to another file from the next batch on; not in the middle of one, which a thread may be writing."""
        if self._next is not None:
            self._next.close()
        self._next = file
        self._wake.set()

    @property
    def path(self) -> str:
        """The file that lines go to from the next batch on."""
        return (self._next or self.file).path

    def reopen(self) -> None:
        """Opens that file anew. Raises OSError; the old one stays in use then."""
        (self._next or self.file).reopen()

    def flush(self, seconds: float) -> bool:
        """Waits until all lines are written, at most so long; False when they are not."""
        return bool(self._empty.wait(seconds))

    def _change_file(self) -> None:
        if self._next is not None:
            old, self.file, self._next = self.file, self._next, None
            old.close()

    def _report_lost(self, unwritten: int) -> None:
        if self._lost and not unwritten:
            self._lines.append(format_line(time.time(), "error", "log.lost", {"lines": self._lost}))
            self._lost = 0


def _write_lines(fd: int, lines: list[bytes]) -> int:
    """Runs in a thread. One write per line, so that lines of several processes do not mix; returns how many failed."""
    failed = 0
    for line in lines:
        try:
            os.write(fd, line)
        except OSError:
            failed += 1
    return failed
