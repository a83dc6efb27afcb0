"""Two rooms of real servers behind one instance, through a whole fleet, with clients that check what they read."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server
from tests.kit.wait import wait_for

START: dict[str, Callable[[], Running]] = {"redis": redis_server, "memcache": memcached}
SIDES = ("first", "second")
SIZE = 2  # servers in a room


class Site:
    """Servers in each of two rooms. options: lines of [instance.level.rooms]; below: lines of a last level."""

    def __init__(
        self, stack: ExitStack, folder: Path, kind: str, options: str = "", below: str = "", front: str = ""
    ) -> None:
        self.stack = stack
        self.folder = folder
        self.kind = kind
        self.front = front or kind
        self.below = below
        self.rooms = [[stack.enter_context(START[kind]()) for _ in range(SIZE)] for _ in SIDES]
        self.port = free_port()
        self.start(options)

    def start(self, options: str) -> None:
        """A fleet with these options of the rooms."""
        self.fleet = self.stack.enter_context(Fleet(self.config(options), self.folder))

    def stop(self) -> None:
        """End the fleet in good order."""
        self.fleet.send_signal(signal.SIGTERM)
        self.fleet.process.wait(40)

    def config(self, options: str) -> str:
        """The configuration with these options of the rooms."""
        first, second = (
            ", ".join(f'"{server.address} n{index}"' for index, server in enumerate(room)) for room in self.rooms
        )
        allow = {"redis": '["FLUSHALL"]', "memcache": '["FLUSH_ALL"]'}[self.front]
        return (
            f'[proxy]\nworkers = 2\n[[instance]]\nname = "shop"\nprotocol = "{self.front}"\n'
            f'listen = ["127.0.0.1:{self.port}"]\nallow = {allow}\n'
            f'  [[instance.level]]\n  storage = "{self.kind}"\n  servers = [{first}, "----", {second}]\n'
            f"    [instance.level.rooms]\n    hold_s = 0.3\n    {options}\n{self.below}"
        )

    def client(self) -> Any:
        """A client of the proxy."""
        return self.to(self.port, self.front)

    def to(self, port: int, kind: str = "") -> Any:
        """A client of whoever listens there."""
        if (kind or self.kind) == "redis":
            return self.stack.enter_context(redis.Redis(port=port))
        client = pymemcache.Client(("127.0.0.1", port), timeout=10, default_noreply=False)
        self.stack.callback(client.close)
        return client

    def stat(self, label: str, name: str) -> int:
        """A gauge of a node, summed over the workers."""
        value: int = self.fleet.stats()["instances"]["shop"]["nodes"][label][name]
        return value

    def kill(self, side: int, how: str) -> None:
        """End all servers of a room at once: "kill" or "freeze"."""
        for server in self.rooms[side]:
            getattr(server, how)()

    def revive(self, side: int, how: str) -> None:
        """They are there again; those that were killed are empty."""
        for server in self.rooms[side]:
            server.start() if how == "kill" else server.thaw()

    def wait_until_ready(self, side: int) -> None:
        """This side has missed nothing that it still lacks."""
        suffix = "@second" if side else ""
        labels = [f"n{index}{suffix}" for index in range(len(self.rooms[0]))]
        wait_for(lambda: not any(self.stat(label, "behind") for label in labels), f"room {SIDES[side]} is equal", 20)

    def wait_until_served_by(self, side: int) -> None:
        """All pairs have this side active."""
        suffix = "@second" if side else ""
        labels = [f"n{index}{suffix}" for index in range(len(self.rooms[0]))]
        wait_for(lambda: all(self.stat(label, "serving") == 2 for label in labels), f"room {SIDES[side]} serves", 20)


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes a Site."""
    with ExitStack() as stack:
        yield lambda kind, *more, **options: Site(stack, tmp_path, kind, *more, **options)
