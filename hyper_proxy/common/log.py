"""The log: one event per line, as text or as JSON (log_lines.py), to standard error or to a file.

`log.info("worker.ready", slot=0, pid=123)` is all that a caller needs to know. What is common to all lines of a process
(slot, pid, generation) is set once with `bind`. Where lines go is a sink: the master and the command line write at
once; a worker puts them into a bounded queue which one greenlet empties (workers/log_writer.py), so that a slow disk
never holds up a request. Lines that can't be written are counted, and told of when there is room again. Never log in a
signal handler or in `__del__`.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from select import PIPE_BUF, POLLOUT, poll  # by name: those of the system, also where gevent replaces them later
from typing import Protocol

from hyper_proxy.common.lines import Lines, Outlet
from hyper_proxy.common.log_lines import FORMS, Fields, Form

LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}

STDERR_FD = 2
_FILE_MODE = 0o640
MOST_PARTS = 512  # of one system call; the system takes 1024. See disk_thread.pxd


class LogFile:
    """The place where lines end up: a file opened for appending, or standard error when `path` is empty.

    Raises OSError when the file can't be opened, as a pipe that nobody reads can't.
    """

    __slots__ = ("_cut", "fd", "path", "regular")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = _open(path) if path else STDERR_FD
        self.regular = _is_regular(self.fd)
        self._cut = False

    def write(self, line: bytes) -> bool:
        """Writes one line, however long that takes; False when it is lost. The disk may fill up in the middle of a
        line: that piece is taken back, or the next line begins on a line of its own."""
        line = b"\n" + line if self._cut else line
        try:
            written = os.write(self.fd, line)
        except OSError:
            return False
        self._cut = written < len(line) and not self._ends_well(line, written)
        return written == len(line)

    def write_all(self, parts: Sequence[memoryview]) -> int:
        """Writes many lines, however long that takes; how many are lost. Each of the parts ends with a line. No line of
        another process gets between: a regular file takes all of them at once, anything else PIPE_BUF bytes at a time.
        """
        if not self.regular:
            return sum(not self.write(piece) and piece.count(b"\n") for part in parts for piece in _pieces(bytes(part)))
        lost = 0
        for start in range(0, len(parts), MOST_PARTS):
            lost += self._write_parts(parts[start : start + MOST_PARTS])
        return lost

    def _write_parts(self, parts: Sequence[memoryview]) -> int:
        begun = [memoryview(b"\n")] if self._cut else []
        whole = [*begun, *parts]
        try:
            written = os.writev(self.fd, whole)
        except OSError:
            return self.account(parts, 0)
        return self.account(whole, written)

    def takes_at_once(self, parts: Sequence[memoryview]) -> bool:
        """Can these be written by one call of the system, with nothing to mend before them?"""
        return self.regular and not self._cut and len(parts) <= MOST_PARTS

    def account(self, parts: Sequence[memoryview], written: int) -> int:
        """The system has taken so many bytes of these: how many lines are lost. A piece of a line is mended."""
        whole = b"".join(parts)
        if written:
            self._cut = written < len(whole) and not self._ends_well(whole, written)
        return whole.count(b"\n", written)

    def _ends_well(self, lines: bytes, written: int) -> bool:
        """Only so many bytes of these lines were written: are they whole lines, or can they be made so? Another process
        that writes to this file knows nothing of a piece of a line, and would go on behind it. Of a standard error
        nobody knows whose bytes are at its end: all who have inherited it move it on."""
        piece = written - lines.rfind(b"\n", 0, written) - 1
        if not piece or not self.path:
            return not piece
        try:
            end = os.lseek(self.fd, 0, os.SEEK_CUR)
            if not self.regular or os.fstat(self.fd).st_size != end:  # somebody has written behind it
                return False
            os.ftruncate(self.fd, end - piece)
        except OSError:
            return False
        return True

    def write_at_once(self, line: bytes) -> bool:
        """The same as `write`, but does not wait for the reader of a pipe, a socket or a terminal: the system says
        whether there is room for PIPE_BUF bytes. Of a regular file nobody can say so."""
        if self.regular:
            return self.write(line)
        room = poll()
        room.register(self.fd, POLLOUT)
        for start in range(0, len(line), PIPE_BUF):
            if not room.poll(0) or not self.write(line[start : start + PIPE_BUF]):
                self._cut = self._cut or start > 0
                return False
        return True

    def reopen(self) -> None:
        """Opens the path anew, so that a file which was renamed by a rotation is let go. The descriptor's number
        stays."""
        if not self.path:
            return
        fresh = _open(self.path)
        self._cut = self._cut and os.path.samestat(os.fstat(fresh), os.fstat(self.fd))
        os.dup2(fresh, self.fd, inheritable=False)
        self.regular = _is_regular(self.fd)
        os.close(fresh)

    def close(self) -> None:
        """Gives the descriptor back; standard error stays open."""
        if self.path:
            os.close(self.fd)


class Sink(Protocol):
    """Takes finished lines; `lost` is how many it could not keep. lines: a queue that takes them as well, if any."""

    file: LogFile

    @property
    def lost(self) -> int: ...

    @property
    def lines(self) -> Lines | None: ...

    def put(self, line: bytes) -> None:
        """Takes one line that ends with a newline; must not raise and must not wait long."""


class DirectSink:
    """Writes each line at once, and waits for nobody who reads: what can't be written (disk full, pipe full, reader
    gone) is counted in `lost`."""

    lines = None

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.lost = 0
        self._untold = 0

    def put(self, line: bytes) -> None:
        if not self.file.write_at_once(line):
            self.lost += 1
            self._untold += 1
        elif self._untold and self.file.write_at_once(lost_line(self._untold)):
            self._untold = 0


Watcher = Callable[[float, str, str, dict[str, object]], None]
"""Hears of every event: seconds since 1970, level, event, fields."""


class Log:
    """The log of one process. outlet: what others must know who make lines on their own."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.threshold = LEVELS["info"]
        self.level = "info"
        self.overruled = ""
        self.watcher: Watcher | None = None
        self.form = FORMS["text"]
        self.outlet = Outlet(self.form)
        self._common: Fields = {}
        self._tell()

    def emit(self, level: str, event: str, fields: Fields) -> None:
        """Writes one line if the level is high enough; who watches hears of it in any case."""
        at = time.time()
        if LEVELS[level] >= self.threshold:
            self.sink.put(self.line(at, level, event, fields))
        if self.watcher is not None:
            self.watcher(at, level, event, fields)

    def choose(self, level: str, overruled: str) -> None:
        """The level of the configuration, and the one an operator has ordered instead of it, "" for none."""
        self.level, self.overruled = level, overruled
        self.threshold = LEVELS[overruled or level]
        self._tell()

    def move(self, sink: Sink) -> None:
        """Lines go there from now on."""
        self.sink = sink
        self._tell()

    def look_like(self, form: Form) -> None:
        """The form of the lines from now on."""
        self.form = form
        self._tell()

    def line(self, at: float, level: str, event: str, fields: Fields) -> bytes:
        """One line in the form of this log, with what is common to all of its lines."""
        return self.form.line(at, level, event, fields | self._common)

    def bind(self, fields: Fields) -> None:
        """Sets the fields that stand at the end of every line from now on."""
        self._common = fields
        self._tell()

    def _tell(self) -> None:
        outlet = self.outlet
        if outlet.lines is not None:
            outlet.lines.finish()  # as they were to look
        outlet.mute = self.threshold > LEVELS["info"]
        outlet.lines = None if outlet.mute else self.sink.lines
        outlet.form, outlet.common = self.form, self._common
        outlet.epoch += 1


def _open(path: str) -> int:
    """O_NONBLOCK is for the opening alone: that of a pipe which nobody reads would last until somebody does."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, _FILE_MODE)
    os.set_blocking(fd, True)
    return fd


def _is_regular(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:  # somebody has started this program without a standard error
        return False


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Whole lines, as many as a pipe takes at once; a longer one alone."""
    start = 0
    while start < len(lines):
        end = lines.rfind(b"\n", start, start + PIPE_BUF) + 1 or lines.index(b"\n", start) + 1
        yield lines[start:end]
        start = end


_process_log = Log(DirectSink(LogFile("")))


def configure(level: str, sink: Sink, form: str = "text") -> None:
    """Sets level, sink and form (a name of FORMS) of this process's log; the caller closes the file of the old sink, if
    it was its own."""
    _process_log.choose(level, _process_log.overruled)
    _process_log.look_like(FORMS[form])
    _process_log.move(sink)


def set_form(form: str) -> None:
    """Changes the form alone."""
    _process_log.look_like(FORMS[form])


def set_level(level: str) -> None:
    """Changes the level alone."""
    _process_log.choose(level, _process_log.overruled)


def overrule(level: str) -> None:
    """An operator's level holds instead of the configured one, whatever that becomes; "" gives it back its place."""
    _process_log.choose(_process_log.level, level)


def bind(**fields: object) -> None:
    """Sets the fields that stand at the end of every line of this process."""
    _process_log.bind(fields)


def watch(watcher: Watcher | None) -> None:
    """Has `watcher` called with every event of this process from now on; None: nobody."""
    _process_log.watcher = watcher


def reopen() -> None:
    """Opens the log file anew (see LogFile.reopen). Raises OSError; the old file stays in use then."""
    _process_log.sink.file.reopen()


def sink() -> Sink:
    """Where lines go now."""
    return _process_log.sink


def outlet() -> Outlet:
    """Where lines go now, for who makes them on his own; the same one for the life of the process."""
    return _process_log.outlet


def lost_line(lines: int) -> bytes:
    """The line with which a sink tells how many it has lost since it last told."""
    return _process_log.line(time.time(), "error", "log.lost", {"lines": lines})


def debug(event: str, **fields: object) -> None:
    """For the developer: off by default."""
    _process_log.emit("debug", event, fields)


def info(event: str, **fields: object) -> None:
    """Something happened as it should, and rarely."""
    _process_log.emit("info", event, fields)


def warning(event: str, **fields: object) -> None:
    """Something is not as it should be; service goes on."""
    _process_log.emit("warning", event, fields)


def error(event: str, **fields: object) -> None:
    """Somebody must do something."""
    _process_log.emit("error", event, fields)
