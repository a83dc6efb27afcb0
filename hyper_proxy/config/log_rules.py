"""Where the log is to be (HP228): what the system would refuse as a fleet starts."""

from __future__ import annotations

import os

from hyper_proxy.config.model import Config
from hyper_proxy.config.rule import Say


def log_has_a_place(config: Config, say: Say) -> None:
    """HP228. A folder that may not be looked at from here may be there for the user of the fleet."""
    file = config.log.file
    folder = os.path.dirname(file)
    if not file:
        return
    try:
        os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        say(("log", "file"), f"there is no folder {folder}: make it, for a fleet makes the file alone")
    except PermissionError:
        return
    if os.path.isdir(file):
        say(("log", "file"), f"{file} is a folder")
