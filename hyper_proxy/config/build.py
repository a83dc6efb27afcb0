"""Makes the records of the model out of read values; what is missing or bad has been noted before and is left out here."""

from __future__ import annotations

from typing import Any

from hyper_proxy.config.addresses import ROOMS, read_file, read_server
from hyper_proxy.config.model import Backoff, Config, Instance, Level, Limits, Log, Server, Timeout
from hyper_proxy.config.notes import Notes, Path

Values = dict[str, Any]


def build_config(file: str, folder: str, values: Values, notes: Notes) -> Config:
    """The whole; instances stand at the same index as in the file."""
    instances = tuple(
        _build_instance(instance, folder, ("instance", index), notes) for index, instance in enumerate(values["instance"])
    )
    admin = values["admin"]["listen"]
    return Config(path=file, admin=admin, log=Log(**values["log"]), instances=instances, **values["proxy"])


def _build_instance(values: Values, folder: str, path: Path, notes: Notes) -> Instance:
    levels = tuple(
        _build_level(level, folder, (*path, "level", index), notes) for index, level in enumerate(values.pop("level"))
    )
    return Instance(
        **values
        | {
            "name": values["name"] or "",
            "protocol": values["protocol"] or "",
            "listen": _present(values["listen"]),
            "allow": frozenset(_present(values["allow"])),
            "limits": Limits(**values["limits"]),
            "levels": levels,
        }
    )


def _build_level(values: Values, folder: str, path: Path, notes: Notes) -> Level:
    storage = values["storage"] or ""
    servers, peers = _build_servers(values["servers"], storage, folder, (*path, "servers"), notes)
    return Level(
        **values
        | {
            "storage": storage,
            "servers": servers,
            "peers": peers,
            "timeout": Timeout(**values["timeout"]),
            "backoff": Backoff(**values["backoff"]),
        }
    )


def _build_servers(
    texts: tuple[str | None, ...] | None, storage: str, folder: str, path: Path, notes: Notes
) -> tuple[tuple[Server, ...], tuple[Server, ...]]:
    """The servers of this room and of the other."""
    rooms: list[list[Server]] = [[]]
    for index, text in enumerate(texts or ()):
        if text == ROOMS:
            rooms.append([])
            notes.add((*path, index), "HP108", "a second room after '----': not served by this version yet")
        elif text is not None:
            try:
                rooms[-1].append(read_file(text, folder) if storage == "sqlite" else read_server(text))
            except ValueError as error:
                notes.add((*path, index), "HP110", str(error))
    if len(rooms) > 2:
        notes.add(path, "HP110", f"there are {len(rooms)} rooms: '----' may stand once")
    elif len(rooms) == 2 and len(rooms[0]) != len(rooms[1]):
        notes.add(path, "HP110", f"the rooms have {len(rooms[0])} and {len(rooms[1])} servers: node by node they are each other's peers")
    return tuple(rooms[0]), tuple(rooms[1]) if len(rooms) > 1 else ()


def _present(read: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Without the elements that could not be read."""
    return tuple(value for value in read or () if value is not None)
