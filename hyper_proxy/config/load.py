"""Reads a configuration file: all of its faults at once, or one frozen record that is complete and checked.

    bytes -> text -> tomllib's values + the lines of all keys -> read values -> model -> rules across keys -> Config
"""

from __future__ import annotations

import os
import stat
import tomllib
from typing import Any

from hyper_proxy.common.errors import ConfigError, Finding
from hyper_proxy.config.build import build_config
from hyper_proxy.config.codes import ERROR
from hyper_proxy.config.lines import find_lines
from hyper_proxy.config.model import Config
from hyper_proxy.config.notes import Notes, Path, show_path
from hyper_proxy.config.reader import Reader
from hyper_proxy.config.rules import apply_rules
from hyper_proxy.config.toml_faults import explain_fault

EMBEDDED_FILE = "hyper_proxy.db"
EMBEDDED_MS = 2000
"""All workers write to that one file: a burst of theirs is waited for longer than a server's answer."""
MAX_FILE_BYTES = 16 * 1024 * 1024
"""A configuration is written by people; a larger file was named by mistake."""

_OPEN_FILES = ("/dev/", "/proc/")
"""Where a shell's pipes have names. Nothing lies beside them: relative paths start from the current folder."""
_MARK = "\ufeff"


def load(path: str) -> Config:
    """The configuration in the file `path`; raises ConfigError with all findings if one of them is an error."""
    config, findings = inspect(path)
    if config is None:
        raise ConfigError(findings)
    return config


def load_text(text: str, path: str) -> Config:
    """The same for a text that is already here; relative paths in it start from the folder of `path`."""
    config, findings = inspect_text(text, path)
    if config is None:
        raise ConfigError(findings)
    return config


def inspect(path: str, once: bool = False) -> tuple[Config | None, list[Finding]]:
    """All findings about a file, and the configuration if none of them is an error; raises nothing. once: as read_bytes
    says."""
    try:
        return inspect_text(read_text(path, once), path)
    except ConfigError as error:
        return None, error.findings


def read_text(path: str, once: bool = False) -> str:
    """The text of a file; raises ConfigError when there is none. once: as read_bytes says."""
    data = read_bytes(path, once)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise ConfigError([Finding(path, line, ERROR, "HP102", message)]) from error


def read_bytes(path: str, once: bool = False) -> bytes:
    """The content of a regular file; raises ConfigError. A pipe, for which one waits, and which is empty the next
    time, will do for who reads but `once`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if once else os.O_NONBLOCK))
        with open(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode) and not (once and stat.S_ISFIFO(mode)):
                raise ValueError("it is no regular file")
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError([Finding(path, 0, ERROR, "HP101", f"cannot be read: {reason}")]) from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError([Finding(path, 0, ERROR, "HP101", f"is larger than {MAX_FILE_BYTES} bytes")])
    return data


def lines_in(path: str) -> dict[str, int]:
    """The line of each key, as people write it, of a file that has been judged before; none when there is no file, or
    none that can be read any more."""
    try:
        return shown_lines(find_lines(read_text(path))) if path else {}
    except ConfigError:
        return {}


def shown_lines(lines: dict[Path, int]) -> dict[str, int]:
    """The same of what find_lines has found."""
    return {show_path(path): line for path, line in lines.items()}


def inspect_text(text: str, path: str) -> tuple[Config | None, list[Finding]]:
    """All findings about a text, and the configuration if none of them is an error."""
    notes = Notes(path, {})
    if text.startswith(_MARK):
        notes.add((), "HP103", "begins with a byte order mark, which toml does not have: save it as UTF-8 without BOM")
        return None, notes.findings
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError; so is a number of 5000 digits
        line, reason = explain_fault(text, error)
        notes.lines = {(): line}
        notes.add((), "HP103", f"is not valid toml: {reason}")
        return None, notes.findings
    notes.lines = find_lines(text)
    return _check(data, path, notes)


def embedded_default(directory: str) -> Config:
    """What runs without a configuration: all fronts on loopback, on one file in `directory`, with copies in workers."""
    servers = [os.path.join(os.path.abspath(directory), EMBEDDED_FILE)]
    fronts = (("redis", "127.0.0.1:6380"), ("memcache", "127.0.0.1:11311"), ("http", "127.0.0.1:8080"))
    file = {"storage": "sqlite", "servers": servers, "timeout": dict.fromkeys(("read_ms", "queue_ms"), EMBEDDED_MS)}
    levels = [{"storage": "local"}, file]
    instances = [
        {"name": protocol, "protocol": protocol, "listen": [listen], "level": levels} for protocol, listen in fronts
    ]
    notes = Notes("embedded default", {})
    config, findings = _check({"instance": instances}, "", notes)
    if config is None:
        raise ConfigError(findings)
    return config


def _check(data: dict[str, Any], path: str, notes: Notes) -> tuple[Config | None, list[Finding]]:
    folder = os.getcwd() if not path or path.startswith(_OPEN_FILES) else os.path.dirname(os.path.abspath(path))
    values = Reader(folder, notes).table("", data, ())
    config = build_config(path, folder, values, notes)
    apply_rules(config, notes)
    return None if notes.failed else config, notes.sorted()
