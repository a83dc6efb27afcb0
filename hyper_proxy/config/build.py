"""Makes the records of the model out of read values.

What is missing or bad has been noted before; it becomes an empty record (BLANK_...), so that the rules across keys can
look at the rest with the indexes of the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hyper_proxy.config.addresses import ROOMS, SECOND, read_file, read_server
from hyper_proxy.config.kinds import FILES, LOCAL, NETWORK
from hyper_proxy.config.model import (
    Backoff,
    Config,
    Instance,
    Level,
    Limits,
    Listen,
    Log,
    Pool,
    Rooms,
    Server,
    Timeout,
    WriteBack,
)
from hyper_proxy.config.notes import Notes, Path

Values = dict[str, Any]

BLANK_LISTEN = Listen()
BLANK_SERVER = Server()


def build_config(file: str, folder: str, values: Values, notes: Notes) -> Config:
    """The whole; instances, levels, listeners and servers stand at the same index as in the file, but for the servers
    behind '----': those are the peers of the ones before it."""
    instances = tuple(
        _build_instance(instance, folder, ("instance", index), notes)
        for index, instance in enumerate(values["instance"])
    )
    admin = values["admin"]
    admin = {"admin": admin["listen"], "admin_token": admin["token"], "show_keys": admin["show_keys"]}
    return Config(path=file, log=Log(**values["log"]), instances=instances, **admin, **values["proxy"])


def _build_instance(values: Values, folder: str, path: Path, notes: Notes) -> Instance:
    levels = tuple(
        _build_level(level, folder, (*path, "level", index), notes) for index, level in enumerate(values.pop("level"))
    )
    built = {
        "name": values["name"] or "",
        "protocol": values["protocol"] or "",
        "listen": tuple(listen or BLANK_LISTEN for listen in values["listen"] or ()),
        "allow": frozenset(name for name in values["allow"] if name),
        "limits": Limits(**values["limits"]),
        "write_back": WriteBack(**values["write_back"]),
        "levels": levels,
    }
    return Instance(**values | built)


def _build_level(values: Values, folder: str, path: Path, notes: Notes) -> Level:
    storage = values["storage"] or ""
    servers, peers = _build_servers(values["servers"] or (), storage, folder, (*path, "servers"), notes)
    writers, others = _build_servers(values["writers"], storage, folder, (*path, "writers"), notes)
    pools = tuple(
        _build_pool(pool, storage, folder, (*path, "pool", i), notes) for i, pool in enumerate(values.pop("pool"))
    )
    built = {
        "storage": storage,
        "pools": pools,
        "servers": servers,
        "peers": peers,
        "writers": writers + others,
        "rooms": Rooms(**values["rooms"]),
        "timeout": Timeout(**values["timeout"]),
        "backoff": Backoff(**values["backoff"]),
    }
    return Level(**values | built)


def _build_pool(values: Values, storage: str, folder: str, path: Path, notes: Notes) -> Pool:
    servers, peers = _build_servers(values["servers"] or (), storage, folder, (*path, "servers"), notes)
    return Pool(**values | {"name": values["name"] or "", "servers": servers, "peers": peers})


def _build_servers(
    texts: tuple[str | None, ...], storage: str, folder: str, path: Path, notes: Notes
) -> tuple[tuple[Server, ...], tuple[Server, ...]]:
    """The servers of the first room and of the second, which may be empty."""
    rooms: list[list[Server]] = [[]]
    for index, text in enumerate(texts):
        is_file = storage in FILES
        if text == ROOMS or (text and not text.strip("-") and not is_file):
            if text != ROOMS:
                notes.add((*path, index), "HP110", f"what stands between two rooms is {ROOMS!r}: four dashes")
            rooms.append([])
            continue
        server = BLANK_SERVER
        if text is not None:
            try:
                server = read_file(text, folder, named=storage != "sqlite") if is_file else read_server(text)
            except ValueError as error:
                if storage:  # else it is said that nobody knows it, and what its servers look like
                    notes.add((*path, index), "HP110", f"{error}{_files_hint(storage)}")
        rooms[-1].append(server)
    sizes = [len(room) for room in rooms]
    if len(rooms) > 2:
        notes.add(path, "HP110", f"there are {len(rooms)} rooms: '----' may stand once")
    elif len(rooms) == 2 and sizes[0] != sizes[1]:
        notes.add(path, "HP110", f"the rooms have {sizes[0]} and {sizes[1]} servers: node by node they are peers")
    if len(rooms) != 2:
        return tuple(rooms[0]), ()
    own = {server.label for server in rooms[0]}
    return tuple(rooms[0]), tuple(_apart(server) if server.label in own else server for server in rooms[1])


def _files_hint(storage: str) -> str:
    is_built_in = storage in (*NETWORK, "sqlite", LOCAL)
    return "" if is_built_in else f'; for paths its plug-in writes @plugin.storage("{storage}", files=True)'


def _apart(peer: Server) -> Server:
    """A peer may have the name of a server of the first room; statistics and orders need another one for it."""
    return replace(peer, name=peer.label + SECOND)
