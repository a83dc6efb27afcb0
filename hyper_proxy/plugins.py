"""Loads the plug-ins of a configuration, and takes them out again: what they register are rows of the same tables that
the built-in protocols, storages, hashes and distributions stand in.

A process loads plug-ins once: the child that checks a file, `explain`, and each worker before it builds anything. Other
code takes new workers, so nobody is ever served by two versions of a plug-in.
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from types import FrameType, ModuleType
from typing import Any, TypeVar

from hyper_proxy.common.plugin_error import Owner, PluginError, describe, place_of
from hyper_proxy.config import ask
from hyper_proxy.config.model import Plugin
from hyper_proxy.config.plugin_files import GROUP, package_of

T = TypeVar("T")

LOAD_S = 5.0
"""To load one plug-in: it defines classes, and does nothing yet. Less than the master waits for the whole file."""
NOBODY = Owner("", "")
MODULE = "hyper_proxy_plugin_"
LOADING = "loading"  # what a plug-in fails in that has not yet said what it has


class Registry:
    """What plug-ins have put into the tables of this process, in order. `owner`: whose code is being loaded."""

    def __init__(self) -> None:
        self.owner = NOBODY
        self._undo: list[Callable[[], object]] = []
        self.rows: dict[tuple[int, str], str] = {}

    def add(self, kind: str, table: MutableMapping[str, T], name: str, row: T) -> None:
        """A row of a table. Raises PluginError when the name is taken."""
        if name in table:
            by = self.rows.get((id(table), name))
            whose = f"by plug-in '{by}'" if by else "by what is built in"
            raise PluginError(self.owner, f"{kind} '{name}'", f"the name is taken {whose}: choose another one")
        table[name] = row
        self.rows[id(table), name] = self.owner.name
        self.later(lambda: (table.pop(name), self.rows.pop((id(table), name))))

    def append(self, names: list[str], name: str) -> None:
        """A name of a list."""
        names.append(name)
        self.later(lambda: names.remove(name))

    def later(self, undo: Callable[[], object]) -> None:
        """How to take back what has just been done."""
        self._undo.append(undo)

    @property
    def mark(self) -> int:
        """The present state, for `back_to`."""
        return len(self._undo)

    def back_to(self, mark: int) -> None:
        """Take back what has been done since then."""
        while len(self._undo) > mark:
            self._undo.pop()()


REGISTRY = Registry()


def load_plugins(plugins: Sequence[Plugin]) -> None:
    """Load these, in the place of those that were loaded before. Raises PluginError, and then none is loaded."""
    REGISTRY.back_to(0)
    for plugin in plugins:
        try:
            _load(plugin)
        except PluginError as error:
            REGISTRY.back_to(0)
            error.args = (f"plug-in '{plugin.name}' cannot be loaded: {in_words(error)}",)
            raise


def load_all(plugins: Sequence[Plugin]) -> list[str | None]:
    """The same, but what can't be loaded is left out: the reason, or None, of each."""
    REGISTRY.back_to(0)
    reasons: list[str | None] = []
    for plugin in plugins:
        ask.on_load(plugin.name)
        try:
            _load(plugin)
        except PluginError as error:
            reasons.append(in_words(error))
        else:
            reasons.append(None)
    ask.on_load("")
    return reasons


def in_words(error: PluginError) -> str:
    """FILE:LINE of the plug-in: what is wrong, and with which of the things that it registers."""
    what = "" if error.function == LOADING else f"{error.function}: "
    if error.asked_for:
        what = f"{error.function} failed{error.asked_for}: "
    return f"{error.at or error.owner.origin}: {what}{error.reason}"


def _load(plugin: Plugin) -> None:
    """Raises PluginError; then the plug-in has left nothing in the tables."""
    owner = Owner(plugin.name, plugin.origin)
    mark = REGISTRY.mark
    REGISTRY.owner = owner
    try:
        with _limit(owner):
            _run(plugin)
        if REGISTRY.mark == mark:
            raise PluginError(owner, LOADING, "it registers nothing: no protocol, storage, hash or distribution")
    except PluginError as error:
        REGISTRY.back_to(mark)
        error.at = error.at or place_of(error, owner)
        raise
    except (Exception, SystemExit) as error:
        REGISTRY.back_to(mark)
        raise PluginError(owner, LOADING, describe(error), place_of(error, owner)) from error
    finally:
        REGISTRY.owner = NOBODY


def _run(plugin: Plugin) -> None:
    if plugin.source:
        module = ModuleType(MODULE + "".join(c if c.isalnum() else "_" for c in plugin.name))
        module.__file__ = plugin.origin
        sys.modules[module.__name__] = module  # dataclasses look for it there
        exec(compile(plugin.source, plugin.origin, "exec"), module.__dict__)
        return
    entry = next(iter(entry_points(group=GROUP, name=plugin.name)))
    package = package_of(entry)
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]  # it was loaded for another file that was checked in this process
    importlib.invalidate_caches()
    entry.load()


@contextmanager
def _limit(owner: Owner) -> Iterator[None]:
    """Ends code that does not come back within LOAD_S, where the system can: in the first thread of the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise PluginError(owner, LOADING, f"it has not been loaded within {LOAD_S:g} s")

    before: Any = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LOAD_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
