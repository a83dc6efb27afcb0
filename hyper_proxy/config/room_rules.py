"""What a level may say of its rooms: what contradicts itself, has no effect, or could not be kept (HP225), and what it
had better say (HP409)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import fields

from hyper_proxy.config.kinds import PIPELINED
from hyper_proxy.config.model import Config, Instance, Level, Rooms
from hyper_proxy.config.notes import Path

Fault = tuple[Path, str]


def room_faults(config: Config, written: Callable[[Path], bool]) -> Iterator[Fault]:
    """Where, and what is said. written: does the file itself say this key?"""
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            path: Path = ("instance", i, "level", j)
            said = [field.name for field in fields(Rooms) if written((*path, "rooms", field.name))]
            if level.all_peers:
                yield from _of_rooms(instance, j, path, said)
                yield from _of_folder(level, path)
            elif said:
                yield (*path, "rooms", said[0]), "there is one room: nothing stands behind '----' in servers"


def unsaid_returns(config: Config, written: Callable[[Path], bool]) -> Iterator[Fault]:
    """HP409: where, and what is said."""
    for i, instance in enumerate(config.instances):
        for level in instance.levels[-1:]:
            at: Path = ("instance", i, "level", len(instance.levels) - 1, "rooms", "on_return")
            single = 0 < len(level.all_peers) == len(level.all_servers) and level.rooms.writes == "single"
            if single and instance.forwards and not written(at):
                text = "a server that returns answers with what it had, without what was written to its peer meanwhile"
                choice = '"empty" for a cache, "keep" where servers are replicated by other means'
                yield at, f'it is "keep" by default: {text}. Write {choice}'


def _of_rooms(instance: Instance, at: int, path: Path, said: list[str]) -> Iterator[Fault]:
    level = instance.levels[at]
    if level.storage not in PIPELINED:
        yield (*path, "servers"), f"{level.storage} has no rooms; {', '.join(PIPELINED)} have"
    elif at < len(instance.levels) - 1:
        for key in ("writes", "on_return", "max_journal", "sync"):
            if key in said:
                text = "the rooms of a level above another are told of every write, and emptied before they return"
                yield (*path, "rooms", key), f"{text}: {key} has no effect"
    elif not instance.forwards:
        text = "rooms are served where a front speaks its servers' language, and in levels above another"
        yield (*path, "servers"), f"{text}: not for {instance.protocol} over {level.storage} as the last level"
    else:
        yield from _of_writes(level, path, said)


def _of_folder(level: Level, path: Path) -> Iterator[Fault]:
    folder = level.rooms.folder
    parent = os.path.dirname(folder)
    if not folder or os.path.isdir(folder):
        return
    if os.path.lexists(folder):
        yield (*path, "rooms", "folder"), f"{folder} is no folder"
    elif not os.path.isdir(parent):
        yield (*path, "rooms", "folder"), f"there is no folder {parent}: only the last one of the path is made"


def _of_writes(level: Level, path: Path, said: list[str]) -> Iterator[Fault]:
    if level.rooms.writes == "mirror":
        if not level.rooms.folder:
            text = 'writes = "mirror" takes a folder: what a server has missed must outlive the proxy'
            yield (*path, "rooms", "writes"), text
        if "on_return" in said:
            text = 'with writes = "mirror" what a server has missed is copied to it: on_return has no effect'
            yield (*path, "rooms", "on_return"), text
        if level.connections > 1:
            text = 'writes = "mirror" takes connections = 1: both rooms must get them in the same order'
            yield (*path, "rooms", "writes"), text
