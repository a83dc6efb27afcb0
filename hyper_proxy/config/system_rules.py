"""What the system would refuse as a fleet starts here: a place of the log (HP228); a user, a folder (HP410)."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable, Iterator

from hyper_proxy.config.model import Config
from hyper_proxy.config.notes import Path
from hyper_proxy.config.rule import Say

_ACCOUNTS: dict[str, Callable[[str], object]] = {"user": pwd.getpwnam, "group": grp.getgrnam}


def log_has_a_place(config: Config, say: Say) -> None:
    """HP228"""
    file = config.log.file
    folder = _missing_folder(file)
    if folder:
        say(("log", "file"), f"there is no folder {folder}: make it, for a fleet makes the file alone")
    if os.path.isdir(file):
        say(("log", "file"), f"{file} is a folder")


def the_system_has_it(config: Config, say: Say) -> None:
    """HP410: only a warning, since the file may be checked on another machine, or before a service manager has made
    the folder."""
    for key, find in _ACCOUNTS.items():
        name = getattr(config, key)
        try:
            known = not name or find(name)
        except KeyError:
            known = False
        if not known:
            say(("proxy", key), f"there is no {key} '{name}' on this system: a fleet does not start here")
    for path, file in _files(config):
        folder = _missing_folder(file)
        if folder:
            say(path, f"there is no folder {folder}: a fleet does not start here")


def _files(config: Config) -> Iterator[tuple[Path, str]]:
    """Those that the master makes, and where the configuration says so."""
    yield ("proxy", "pidfile"), config.pidfile
    yield ("admin", "listen"), config.admin.path
    for i, instance in enumerate(config.instances):
        for j, listen in enumerate(instance.listen):
            yield ("instance", i, "listen", j), listen.path


def _missing_folder(file: str) -> str:
    """The folder of a file, if it is not there. One that may not be looked at from here may be there for the user of
    the fleet."""
    folder = os.path.dirname(file)
    try:
        os.stat(folder or "/")
    except (FileNotFoundError, NotADirectoryError):
        return folder
    except PermissionError:
        return ""
    return ""
