"""One worker's data path, put together: fronts, storages, listeners; and exchanged as a whole at a reload."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import gevent

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Config, Instance
from hyper_proxy.entry.listener import Listener
from hyper_proxy.front import Front, Snapshot
from hyper_proxy.hashing import build
from hyper_proxy.protocol.redis.session import RedisSession
from hyper_proxy.storage.redis import RedisStorage

SESSIONS: dict[str, Callable[[], Any]] = {"redis": lambda: RedisSession}
STORAGES: dict[str, Any] = {"redis": RedisStorage}


def make_snapshot(instance: Instance, previous: Snapshot | None) -> Snapshot:
    """What an instance's requests will see; nodes that stay the same are taken over from `previous`."""
    level = instance.levels[0]
    storage = STORAGES[level.storage](instance.name, level, previous.storage if previous else None)
    placement = build(level.hash, level.distribution, level.hash_tag, level.servers)
    return Snapshot(instance, storage, placement)


class Engine:
    def __init__(self, config: Config, slot: int) -> None:
        self.config = config
        self.slot = slot
        self.fronts: dict[str, Front] = {}
        self.listeners = {}
        for instance in config.instances:
            self.fronts[instance.name] = Front(SESSIONS[instance.protocol](), make_snapshot(instance, None), slot)

    def serve(self, instance: str, sock: socket.socket) -> None:
        name = sock.getsockname()
        address = name if isinstance(name, str) else f"{name[0]}:{name[1]}"
        self.listeners[instance, address] = Listener(self.fronts[instance], sock, address, print)
