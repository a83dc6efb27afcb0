"""Reading `plugins`: where the code of each is, and may it be trusted? It is run by those who load it (ask.py).

    plugins = ["plugins/toy.py", "acme_storage"]

What ends in .py is a file; anything else is the name of an entry point of the group hyper_proxy.plugins, which an
installed package has.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import stat
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from hyper_proxy.config.ask import load_plugins
from hyper_proxy.config.model import Plugin
from hyper_proxy.config.place import Bad, Place, wrong_type

GROUP = "hyper_proxy.plugins"
MAX_SOURCE_BYTES = 4 * 1024 * 1024
"""A file that people write is smaller; a larger one was named by mistake."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class PluginList:
    """The plug-ins. Reading them loads them, so that what they add is known when the rest of the file is read."""

    accepts: str = (
        'list of strings: "path/of/file.py", relative to the folder of the configuration, or the name of an entry point'
        f" of the group {GROUP}"
    )

    def read(self, value: object, place: Place) -> tuple[Plugin, ...]:
        if not isinstance(value, list):
            raise wrong_type(value, "a list of strings")
        found: list[tuple[int, Plugin]] = []
        for index, text in enumerate(value):
            try:
                if not isinstance(text, str):
                    raise wrong_type(text, "a string")
                plugin = find(text, place.folder)
                _check_trust(plugin, index, place)
                if plugin in (other for _, other in found):
                    place.bad(Bad("HP111", f"'{text}' is listed twice"), index)
                    continue
                found.append((index, plugin))
            except Bad as bad:
                place.bad(bad, index)
                place.notes.lacks_plugins = True
        plugins = [plugin for _, plugin in found]
        for (index, plugin), reason in zip(found, load_plugins(plugins), strict=True):
            if reason:
                place.notes.lacks_plugins = True
                place.bad(Bad("HP111", f"'{plugin.name}' cannot be loaded: {reason}"), index)
        return tuple(plugins)


def find(text: str, folder: str) -> Plugin:
    """The plug-in of an entry of the list. Raises Bad."""
    if text.endswith(".py"):
        path = os.path.abspath(os.path.join(folder, text))
        source = _read(path)
        return Plugin(text, path, hashlib.sha256(source).hexdigest(), source)
    entries = list(entry_points(group=GROUP, name=text)) if text else []
    if not entries:
        names = ", ".join(sorted({entry.name for entry in entry_points(group=GROUP)})) or "none is installed"
        what = f"is neither a file (NAME.py) nor an entry point of the group {GROUP} ({names})"
        raise Bad("HP111", f"{text!r} {what}")
    if len({entry.value for entry in entries}) > 1:
        raise Bad("HP111", f"several packages have an entry point '{text}': {', '.join(one.value for one in entries)}")
    origin = _origin(entries[0])
    return Plugin(text, origin, digest_of(origin))


def package_of(entry: EntryPoint) -> str:
    """The outermost package, or the module, that an entry point lies in."""
    return entry.module.partition(".")[0]


def _origin(entry: EntryPoint) -> str:
    importlib.invalidate_caches()
    try:
        spec = importlib.util.find_spec(package_of(entry))
    except ValueError:
        spec = None
    if spec is None or not spec.origin:
        raise Bad("HP111", f"'{entry.name}' is in {entry.value}, which is not installed")
    return os.path.dirname(spec.origin) if spec.submodule_search_locations else spec.origin


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Bad("HP111", f"{path} is no regular file")
            source = file.read(MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Bad("HP111", f"{path} cannot be read: {reason}") from error
    if not source.strip():
        raise Bad("HP111", f"{path} is empty")
    if len(source) > MAX_SOURCE_BYTES:
        raise Bad("HP111", f"{path} is larger than {MAX_SOURCE_BYTES} bytes")
    return source


def digest_of(origin: str) -> str:
    """Identifies the code in a file, or in all files of a package; "" when it can't be read."""
    path = Path(origin)
    total = hashlib.sha256()
    try:
        if not path.is_dir():
            return hashlib.sha256(path.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*.py")):
            total.update(f"{file.relative_to(path)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    except OSError:
        return ""
    return total.hexdigest()


def are_current(plugins: tuple[Plugin, ...]) -> bool:
    """Is their code still what was read?"""
    return all(digest_of(plugin.origin) == plugin.digest for plugin in plugins)


def _check_trust(plugin: Plugin, index: int, place: Place) -> None:
    """Who can write the code, or exchange it, can do what the proxy can. As root that is refused; raises Bad."""
    for path in (plugin.origin, os.path.dirname(plugin.origin)):
        facts = os.stat(path)
        shared = facts.st_mode & _OTHERS and not (stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX)
        if os.geteuid() == 0 and (facts.st_uid != 0 or shared):
            what = "does not belong to root" if facts.st_uid != 0 else "can be written by others"
            remedy = "chown root and chmod go-w it, or start as another user"
            raise Bad("HP112", f"{path} {what}, and root would run it: {remedy}")
        if shared and facts.st_mode & stat.S_IWOTH:
            place.bad(Bad("HP407", f"{path} can be written by everybody, who could do what the proxy can"), index)
