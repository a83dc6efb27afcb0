"""The file that says which process is the master, for tools that can't ask a service manager.

A lock on the file, held as long as the master lives, decides whether there is a master; the number in it only informs.
So a file that a killed master left behind is taken over whatever process has its number now, and two masters never
share one. The lock belongs to the open file, not to the process: a successor that inherits the descriptor holds it
without a gap, and a child must close its copy.
"""

from __future__ import annotations

import fcntl
import os

from hyper_proxy.common import log
from hyper_proxy.common.errors import HyperProxyError

_MODE = 0o644


class PidFileError(HyperProxyError):
    """There is another master, or the file can't be written; `key` is the setting that names it. `or_else`: what may be
    done instead of changing that."""

    kind = "pidfile"
    key = "proxy.pidfile"

    def __init__(self, path: str, reason: str, or_else: str = "") -> None:
        super().__init__(f"cannot use the pid file {path}: {reason}; {or_else}change {self.key}")


class PidFile:
    """A pid file that is ours; see `claim` and `inherit`. Without a path it does nothing."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        """The locked descriptor, for a successor to inherit; -1 when there is none."""

    def write(self) -> None:
        """Makes this process the one that the file names."""
        if self.fd >= 0:
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, b"%d\n" % os.getpid(), 0)

    def give_to(self, user: int, group: int) -> None:
        """Makes a user the owner of the file, so that a master which has become that user may write it."""
        if self.fd >= 0:
            os.fchown(self.fd, user, group)

    def remove(self) -> None:
        """At the end of the last master: the file goes, unless somebody has put another one in its place."""
        if self.fd >= 0:
            try:
                if _is_at(self.path, self.fd):
                    os.unlink(self.path)
            except OSError as error:  # the folder is not ours any more; without a lock the file means nothing
                log.warning("pidfile.not_removed", error=error)
            self.close()

    def close(self) -> None:
        """Gives up this descriptor alone: in a child, and in a master whose successor holds the lock."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def claim(path: str) -> PidFile:
    """Takes the file, made if need be, and writes this process into it; "" is no file. Raises PidFileError."""
    if not path:
        return PidFile("", -1)
    try:
        pidfile = PidFile(path, _lock(path))
        pidfile.write()
    except BlockingIOError as error:
        raise PidFileError(path, f"it belongs to a running master{_named_in(path)}", "stop that one, or ") from error
    except OSError as error:
        raise PidFileError(path, error.strerror or str(error)) from error
    return pidfile


def inherit(path: str, fd: int) -> PidFile:
    """The file of a predecessor that has passed its locked descriptor on. Its number stays until `write`, so that the
    file is right also when nothing comes of this master."""
    os.set_inheritable(fd, False)
    return PidFile(path, fd)


def _lock(path: str) -> int:
    """A locked descriptor of the file at the path. Raises BlockingIOError when it is locked by another master."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, fd):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # An ending master has removed it between our two calls.


def _is_at(path: str, fd: int) -> bool:
    """Is the open file the one that the path leads to?"""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _named_in(path: str) -> str:
    """ " (pid N)", when the file says so."""
    try:
        with open(path, encoding="ascii") as file:
            number = file.read(32).strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return f" (pid {number})" if number.isdecimal() else ""
