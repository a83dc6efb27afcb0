"""Giving up what only the start needs: once the ports are bound, the master becomes an ordinary user for good.

What it holds then is made that user's: log, pid file, sockets. That goes for TCP sockets too: the kernel lets only
sockets of one user share a port, so a later worker could not join those that root has bound. Children are forked
afterwards and are that user from their first moment on.
"""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
import socket
import stat
from dataclasses import dataclass

from hyper_proxy.common import log
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Config
from supervisor.current import Current

# linux/prctl.h
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38


class PrivilegeError(HyperProxyError):
    """The user can't be had; `key` is the setting to change, which the text names, too, after what may be done
    instead."""

    kind = "privilege"

    def __init__(self, text: str, key: str = "proxy.user", or_else: str = "") -> None:
        super().__init__(f"{text}; {or_else}change {key}")
        self.key = key


@dataclass(frozen=True, slots=True)
class User:
    """Whom to become; `groups` are all of them, the first one included."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @property
    def is_present(self) -> bool:
        """Is this process that user already? Then whoever started it has chosen its groups."""
        return os.getresuid() == (self.uid,) * 3 and os.getresgid() == (self.gid,) * 3


def user_of(config: Config) -> User | None:
    """[proxy] user and group; None when neither is set. Raises PrivilegeError for one that the system does not know."""
    if not config.user and not config.group:
        return None
    try:
        entry = pwd.getpwnam(config.user) if config.user else pwd.getpwuid(os.getuid())
    except KeyError:
        raise PrivilegeError(f"there is no user '{config.user}' on this system") from None
    try:
        gid = grp.getgrnam(config.group).gr_gid if config.group else entry.pw_gid
    except KeyError:
        raise PrivilegeError(f"there is no group '{config.group}' on this system", "proxy.group") from None
    return User(entry.pw_name, entry.pw_uid, gid, tuple(os.getgrouplist(entry.pw_name, gid)))


def drop_privileges(current: Current) -> None:
    """Gives what is held to [proxy] user, if there is one, and becomes that user, with no way back. Raises
    PrivilegeError; nothing is held then."""
    try:
        user = user_of(current.config)
        if user is not None and not user.is_present:
            _become(user, current)
    except PrivilegeError:
        current.close()
        raise


def _become(user: User, current: Current) -> None:
    try:
        _give(user, current)
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        _try_on(user)
        os.setresuid(user.uid, user.uid, user.uid)
    except PermissionError as error:
        text = f"this process may not become user '{user.name}': {error.strerror}"
        raise PrivilegeError(text, or_else="start it as root, or ") from error
    _prctl(_PR_SET_NO_NEW_PRIVS)
    # Changing the user takes it away: its own /proc entries would be root's, unreadable for the sidecar.
    _prctl(_PR_SET_DUMPABLE)
    log.info("master.user", user=user.name, uid=user.uid, gid=user.gid)
    if current.config.path and not os.access(current.config.path, os.R_OK):
        log.warning("config.unreadable", file=current.config.path, user=user.name, meaning="a reload will be refused")


def _try_on(user: User) -> None:
    """Children import what the master has not: a user who may not read that is told so here, while there is a way
    back."""
    os.seteuid(user.uid)
    closed = [path for path in (os.__file__, __file__) if not os.access(path, os.R_OK, effective_ids=True)]
    if closed:
        os.seteuid(os.getuid())
        text = f"user '{user.name}' may not read {closed[0]}, which is the program"
        raise PrivilegeError(text, or_else="install Python and hyper_proxy where it may, or ")


def _give(user: User, current: Current) -> None:
    current.pidfile.give_to(user.uid, user.gid)
    file = log.sink().file
    if file.path and stat.S_ISREG(os.fstat(file.fd).st_mode):
        os.fchown(file.fd, user.uid, user.gid)
    for listener in (*current.listeners.values(), current.admin):
        for sock in listener.sockets:
            os.fchown(sock.fileno(), user.uid, user.gid)
            if sock.family == socket.AF_UNIX:
                os.chown(listener.listen.path, user.uid, user.gid)


def _prctl(option: int) -> None:
    """Sets a property of this process to 1."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
