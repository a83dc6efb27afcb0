"""The log: one event per line, `time level event key=value ...`, to standard error or to a file.

`log.info("worker.ready", slot=0, pid=123)` is all that a caller needs to know. What is common to all lines of a process
(slot, pid, generation) is set once with `bind`. Where lines go is a sink: the master and the command line write at
once; a worker puts them into a bounded queue which one greenlet empties (workers/log_writer.py), so that a slow disk
never holds up a request. Never log in a signal handler or in `__del__`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Protocol

LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}

STDERR_FD = 2
_FILE_MODE = 0o640
# What may stand bare behind a `key=`; everything else is written as a JSON string, so that a line stays one line.
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@+,*()[]%&#~^{}<>|;!?$")


class LogFile:
    """The place where lines end up: a file opened for appending, or standard error when `path` is empty.

    Raises OSError when the file can't be opened.
    """

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = _open(path) if path else STDERR_FD

    def reopen(self) -> None:
        """Opens the path anew, so that a file which was renamed by a rotation is let go. The descriptor's number
        stays."""
        if not self.path:
            return
        fresh = _open(self.path)
        os.dup2(fresh, self.fd, inheritable=False)
        os.close(fresh)

    def close(self) -> None:
        """Gives the descriptor back; standard error stays open."""
        if self.path:
            os.close(self.fd)


class Sink(Protocol):
    """Takes finished lines."""

    file: LogFile

    def put(self, line: bytes) -> None:
        """Takes one line that ends with a newline; must not raise and must not wait long."""


class DirectSink:
    """Writes each line at once. A line that can't be written (disk full, reader gone) is counted in `lost`."""

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.lost = 0

    def put(self, line: bytes) -> None:
        try:
            os.write(self.file.fd, line)
        except OSError:
            self.lost += 1


Watcher = Callable[[float, str, str, dict[str, object]], None]
"""Hears of every event: seconds since 1970, level, event, fields."""


class Log:
    """The log of one process."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.threshold = LEVELS["info"]
        self.level = "info"
        self.overruled = ""
        self.watcher: Watcher | None = None
        self._common = ""

    def emit(self, level: str, event: str, fields: dict[str, object]) -> None:
        """Writes one line if the level is high enough; who watches hears of it in any case."""
        at = time.time()
        if LEVELS[level] >= self.threshold:
            self.sink.put(format_line(at, level, event, fields, self._common))
        if self.watcher is not None:
            self.watcher(at, level, event, fields)

    def choose(self, level: str, overruled: str) -> None:
        """The level of the configuration, and the one an operator has ordered instead of it, "" for none."""
        self.level, self.overruled = level, overruled
        self.threshold = LEVELS[overruled or level]

    def bind(self, fields: dict[str, object]) -> None:
        """Sets the fields that stand at the end of every line from now on."""
        self._common = _pairs(fields)


def format_line(at: float, level: str, event: str, fields: dict[str, object], common: str = "") -> bytes:
    """One line of the log; `at` in seconds since 1970, written in UTC with milliseconds."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    text = f"{seconds}.{int(at * 1000) % 1000:03d}Z {level} {event}{_pairs(fields)}{common}\n"
    return text.encode("utf-8", "backslashreplace")


def _pairs(fields: dict[str, object]) -> str:
    return "".join(f" {name}={_value(value)}" for name, value in fields.items())


def _value(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if text and _BARE.issuperset(text) else json.dumps(text, ensure_ascii=False)


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)


_process_log = Log(DirectSink(LogFile("")))


def configure(level: str, sink: Sink) -> None:
    """Sets level and sink of this process's log; the caller closes the file of the old sink, if it was its own."""
    _process_log.choose(level, _process_log.overruled)
    _process_log.sink = sink


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
