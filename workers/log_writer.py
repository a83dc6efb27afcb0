"""The log of a worker: a bounded queue, emptied by one greenlet through a thread: a slow disk delays no request.

All that touches the disk runs in the thread: writing, and opening the file anew or another one.
"""

from __future__ import annotations

from time import monotonic

import gevent
from gevent.event import AsyncResult, Event

from hyper_proxy.common import log
from hyper_proxy.common.disk_thread import DiskThread
from hyper_proxy.common.lines import NEVER, Lines
from hyper_proxy.common.log import LogFile, lost_line

# What may wait for the disk; further lines are dropped, and how many were is said as soon as there is room.
MAX_BYTES = 16 * 1024 * 1024

# The thread is not woken again sooner than this. A line after a pause, or many lines, do not wait. Of much more the
# processor's cache has lost the first lines when they are written, and the thread would hold a core for milliseconds,
# from which the servers and clients are moved away.
GATHER_S = 0.05
MANY_BYTES = 256 * 1024


class QueueSink:
    """Takes lines at once; `write_all` is the greenlet that writes them."""

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self._wake = Event()
        self.lines = Lines(MAX_BYTES, self._wake.set)
        self._empty = Event()
        self._thread = DiskThread()
        self._wanted = ""
        self._must_open = False
        self._opened: AsyncResult[str] = AsyncResult()

    @property
    def lost(self) -> int:
        """The lines that were dropped, or that the disk refused."""
        return self.lines.lost

    def put(self, line: bytes) -> None:
        """Queues one line, or counts it as lost when the queue is full."""
        self.lines.put(line)

    def write_all(self) -> None:
        """Writes what is queued, for ever."""
        lines, written_at = self.lines, 0.0
        while True:
            if not (lines.waiting or self._must_open):
                self._empty.set()
                self._wake.clear()
                self._sleep_until(1, None)
            if (left := written_at + GATHER_S - monotonic()) > 0 and lines.waiting < MANY_BYTES:
                self._sleep_until(MANY_BYTES, left)
            if self._must_open:
                self._open()
            if lines.waiting:
                self._write()
                written_at = monotonic()

    def _sleep_until(self, waiting: int, seconds: float | None) -> None:
        """Until so many bytes wait, or somebody is in a hurry."""
        self.lines.alarm_at = waiting
        self._wake.wait(seconds)
        self._wake.clear()
        self.lines.alarm_at = NEVER

    def _write(self) -> None:
        taken = self.lines.take()
        unwritten = self._write_parts(taken)
        self.lines.give_back(taken)
        self.lines.lose(unwritten)
        if not unwritten and (untold := self.lines.tell()):
            self.lines.put(lost_line(untold))

    def _write_parts(self, parts: list[memoryview]) -> int:
        """How many lines are lost. What is more than to write to a file, which is rare, is done by a Python thread."""
        threads = gevent.get_hub().threadpool
        if not self.file.takes_at_once(parts):
            lost: int = threads.apply(self.file.write_all, (parts,))
            return lost
        try:
            written = self._thread.write_parts(self.file.fd, parts)
        except OSError:
            written = 0
        if written == sum(map(len, parts)):
            return 0
        lost = threads.apply(self.file.account, (parts, written))
        return lost

    def move_to(self, path: str) -> AsyncResult[str]:
        """Writes to another file from the next batch on, or to the same one, opened anew; not in the middle of a batch,
        which a thread may be writing. "" is standard error. The result comes when it is done: "", or why the system
        refuses."""
        if not self._must_open:
            self._opened = AsyncResult()
        self._wanted, self._must_open = path, True
        self._wake.set()
        return self._opened

    @property
    def path(self) -> str:
        """The file that lines go to from the next batch on."""
        return self._wanted if self._must_open else self.file.path

    def reopen(self) -> AsyncResult[str]:
        """Opens that file anew, after it was renamed; the result as of `move_to`."""
        return self.move_to(self.path)

    def flush(self, seconds: float) -> bool:
        """Waits until all lines are written, at most so long; False when they are not."""
        self._empty.clear()
        self._wake.set()
        return bool(self._empty.wait(seconds))

    def _open(self) -> None:
        """What can't be opened leaves the log where it is, which says so."""
        threads, self._must_open = gevent.get_hub().threadpool, False
        old, path, opened = self.file, self._wanted, self._opened
        outcome = threads.apply(_open_anew, (old, path))
        if isinstance(outcome, OSError):
            event = "log.not_reopened" if path == old.path else "log.not_opened"
            log.error(event, file=path, error=outcome)
            opened.set(outcome.strerror or str(outcome))
            return
        if outcome is not old:
            self.file = outcome
            threads.apply(old.close)
        opened.set("")


def _open_anew(old: LogFile, path: str) -> LogFile | OSError:
    """In the thread, of which gevent would print an error that is raised: the old file if it has the path, or another
    one, or why the system refuses."""
    try:
        if path != old.path:
            return LogFile(path)
        old.reopen()
    except OSError as error:
        return error
    return old
