"""Begins a new log file when the old one is large or old enough, and deletes those that are too many.

    size        FILE ──► FILE.1 ──► FILE.2 ──► ... ──► FILE.keep ──► gone
    hour, day   FILE ──► FILE.YYYYMMDD-HH, FILE.YYYYMMDD       the hour or the day of its lines, by the local clock

The master alone renames; of two, the one that serves. Who still has the old descriptor writes on into the renamed file
until it has reopened, so no line is lost; with keep = 0 the file is emptied where it is. What is no regular file (a
terminal, a pipe, /dev/null) is never touched. A file that somebody else has renamed or removed is opened anew.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hyper_proxy.common import log
from hyper_proxy.common.log import LogFile
from hyper_proxy.config.model import Log
from supervisor.loop import Loop

# For so long a file may grow beyond log.max_bytes.
CHECK_S = 1.0

# log.roll to the strftime form that names a period. Names of one form sort as their periods do.
STAMPS = {"hour": "%Y%m%d-%H", "day": "%Y%m%d"}
_DATED = re.compile(r"\d{8}(-\d\d)?")


class LogRoller:
    """Rolls the file that the master's log goes to, by the settings in force at each check.

    `tell` asks the other processes to open their log anew; `clock` gives seconds since 1970. Make it before the first
    line is written: from the time of the last one it knows what hour or day a file of an earlier run belongs to.
    """

    def __init__(
        self, settings: Callable[[], Log], tell: Callable[[], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._tell = tell
        self._clock = clock
        self._known = settings()
        self._leads = True
        self._warned: dict[str, str | None] = {}
        last = os.fstat(log.sink().file.fd)
        # The last moment that the lines of the file are known to be of.
        self._period_s = min(last.st_mtime, clock()) if last.st_size else clock()

    def follow(self) -> None:
        """Another master rolls this file from now on; ours are opened anew when it has."""
        self._leads = False

    def run(self, loop: Loop) -> None:
        """Checks now and once a second from now on."""
        self.check()
        loop.later(CHECK_S, lambda: self.run(loop))

    def check(self) -> None:
        """Does what is due. What the system refuses is logged once and tried again: the next second, or at the end of
        the next period, whose name the file bears then."""
        settings, file, now_s = self._settings(), log.sink().file, self._clock()
        before, self._known = self._known, settings
        period_s, self._period_s = self._period_s, now_s
        own = os.fstat(file.fd)
        if settings.roll == "none" or not file.path or not stat.S_ISREG(own.st_mode):
            return
        with self._warn_once("log.not_rolled"):
            if not _is_at(file.path, own):
                self._reopen()
                log.info("log.reopened", why="somebody else has renamed or removed the file")
            elif self._leads and _is_due(settings, own.st_size, period_s, now_s):
                self._roll(settings, file, own.st_size, period_s)
        if self._leads and (settings.roll, settings.keep) != (before.roll, before.keep):
            self._delete(settings, file.path)

    def _roll(self, settings: Log, file: LogFile, size_bytes: int, period_s: float) -> None:
        if settings.keep == 0:
            os.ftruncate(file.fd, 0)
            log.info("log.emptied", bytes=size_bytes)
        else:
            if settings.roll in STAMPS:
                rolled = _rename_dated(file.path, _stamp(settings, period_s))
            else:
                rolled = _rename_numbered(file.path, settings.keep)
            self._reopen()
            log.info("log.rolled", to=rolled, bytes=size_bytes)
        self._delete(settings, file.path)

    def _reopen(self) -> None:
        log.reopen()
        self._tell()

    def _delete(self, settings: Log, path: str) -> None:
        """Deletes the rolled files beyond `keep`; those of another way to roll count as older."""
        with self._warn_once("log.not_deleted"):
            numbered, dated = _numbered(path), _dated(path)
            newest_first = [*dated, *numbered] if settings.roll in STAMPS else [*numbered, *dated]
            failures = []
            for old in newest_first[settings.keep :]:
                try:
                    with suppress(FileNotFoundError):
                        os.unlink(old)
                except OSError as error:
                    failures.append(error)
            if failures:
                raise failures[0]

    @contextmanager
    def _warn_once(self, event: str) -> Iterator[None]:
        """Logs what the system refuses, unless it did so for the same reason the last time."""
        try:
            yield
        except OSError as error:
            if self._warned.get(event) != error.strerror:
                self._warned[event] = error.strerror
                log.warning(event, error=error)
        else:
            self._warned.pop(event, None)


def _is_at(path: str, own: os.stat_result) -> bool:
    """Is the open file the one at the path? Raises OSError for a symbolic link: its target has a name of its own."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(there.st_mode):
        raise OSError(errno.ELOOP, "A symbolic link is not rolled", path)
    return os.path.samestat(there, own)


def _stamp(settings: Log, at_s: float) -> str:
    return time.strftime(STAMPS[settings.roll], time.localtime(at_s))


def _is_due(settings: Log, size_bytes: int, period_s: float, now_s: float) -> bool:
    """A clock that was set back begins no period, and an empty file is not rolled."""
    if settings.roll in STAMPS:
        return size_bytes > 0 and _stamp(settings, now_s) > _stamp(settings, period_s)
    return size_bytes >= settings.max_bytes


def _rename_numbered(path: str, keep: int) -> str:
    """Moves every number up by one; the last that is kept falls out, replaced by the one before it."""
    moved = [path, *_numbered(path)[: keep - 1]]
    for number in range(len(moved), 0, -1):
        os.rename(moved[number - 1], f"{path}.{number}")
    return f"{path}.1"


def _rename_dated(path: str, stamp: str) -> str:
    """Raises FileExistsError when the name is taken, as after a clock was set back: no roll overwrites another."""
    rolled = f"{path}.{stamp}"
    if os.path.lexists(rolled):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), rolled)
    os.rename(path, rolled)
    return rolled


def _numbered(path: str) -> list[str]:
    """FILE.1, FILE.2 and so on to the first that is missing: what lies behind a gap is somebody else's."""
    found: list[str] = []
    while os.path.lexists(following := f"{path}.{len(found) + 1}"):
        found.append(following)
    return found


def _dated(path: str) -> list[str]:
    """The files that are named by a period, the newest first."""
    folder, name = os.path.split(path)
    start = f"{name}."
    names = [entry for entry in os.listdir(folder or ".") if entry.startswith(start)]
    return [os.path.join(folder, one) for one in sorted(names, reverse=True) if _DATED.fullmatch(one, len(start))]
