"""Two rooms of real servers behind one instance of a whole fleet, and clients that check what they read."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pymemcache
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
        self, stack: ExitStack, folder: Path, kind: str, options: str = "", below: str = "", front: str = "",
        workers: int = 2,
    ) -> None:  # fmt: skip
        self.workers = workers
        self.stack = stack
        self.folder = folder
        self.kind = kind
        self.front = front or kind
        self.below = below
        self.rooms = [[stack.enter_context(START[kind]()) for _ in range(SIZE)] for _ in SIDES]
        self.addresses: dict[Running, str] = {}  # where the proxy reaches a server, if not at its own
        self.port = free_port()
        self.start(options)

    def start(self, options: str) -> None:
        """A fleet with these options of the rooms."""
        self.fleet = self.stack.enter_context(Fleet(self.config(options), self.folder))

    def stop(self) -> None:
        """End the fleet in good order."""
        self.fleet.send_signal(signal.SIGTERM)
        self.fleet.process.wait(40)

    def config(self, options: str, alone: bool = False) -> str:
        """The configuration with these options of the rooms. alone: with the first room only."""
        first, second = (
            ", ".join(f'"{self.addresses.get(one, one.address)} n{index}"' for index, one in enumerate(room))
            for room in self.rooms
        )
        servers = first if alone else f'{first}, "----", {second}'
        rooms = "" if alone else f"    [instance.level.rooms]\n    hold_s = 0.3\n    {options}\n"
        allow = {"redis": '["FLUSHALL"]', "memcache": '["FLUSH_ALL"]'}[self.front]
        return (
            f'[proxy]\nworkers = {self.workers}\n[[instance]]\nname = "shop"\nprotocol = "{self.front}"\n'
            f'listen = ["127.0.0.1:{self.port}"]\nallow = {allow}\n'
            f'  [[instance.level]]\n  storage = "{self.kind}"\n  servers = [{servers}]\n{rooms}{self.below}'
        )

    def client(self) -> Any:
        """A client of the proxy."""
        return self.to(self.port, self.front)

    def to(self, port: int, kind: str = "") -> Any:
        """A client of whoever listens there."""
        if (kind or self.kind) == "redis":
            return self.stack.enter_context(redis.Redis(port=port, socket_timeout=20))
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
        """All workers know that this side has missed nothing that it still lacks."""
        suffix = "@second" if side else ""

        def is_equal() -> bool:
            nodes = self.fleet.stats()["instances"]["shop"]["nodes"]
            pairs = [(nodes[f"n{index}"], nodes[f"n{index}@second"]) for index in range(SIZE)]
            known = all(one["serving"] + other["serving"] == self.workers for one, other in pairs)
            return known and not any(nodes[f"n{index}{suffix}"]["behind"] for index in range(SIZE))

        wait_for(is_equal, f"room {SIDES[side]} is equal", 20)

    def wait_until_served_by(self, side: int) -> None:
        """All pairs have this side active."""
        suffix = "@second" if side else ""
        labels = [f"n{index}{suffix}" for index in range(len(self.rooms[0]))]
        serves = f"room {SIDES[side]} serves"
        wait_for(lambda: all(self.stat(label, "serving") == self.workers for label in labels), serves, 20)


class Writer:
    """A client that writes in many ways under keys of its own, and under some that all of them write. misses: may it
    find nothing of what it has written a moment ago?"""

    def __init__(self, client: Any, index: int, stopping: Event, misses: bool = False) -> None:
        self.client = client
        self.index = index
        self.stopping = stopping
        self.misses = misses
        self.number = 0
        self.steps = 0
        self.errors: list[str] = []
        self.failed: list[tuple[float, float]] = []  # when such a request began and ended, by the monotonic clock
        self.slowest = 0.0
        self.thread = Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopping.is_set():
            self.number += 1
            began = time.monotonic()
            try:
                self.step(f"c{self.index}")
            except Exception as error:  # noqa: BLE001  every kind of failure counts
                self.errors.append(repr(error))
                self.failed.append((began, time.monotonic()))
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.steps += 1

    def step(self, own: str) -> None:
        self.client.set(f"{own}:{self.number % 40}", str(self.number))
        self.client.set(f"shared:{self.number % 7}", f"{self.index} {self.number}")
        if isinstance(self.client, redis.Redis):
            self.client.incr(f"{own}:count")
            self.client.rpush(f"{own}:list", self.number)
            self.client.incr("shared:count")
        found = self.client.get(f"{own}:{self.number % 40}")
        assert found == str(self.number).encode() or (self.misses and found is None), found


@contextmanager
def writing(site: Site, count: int) -> Iterator[list[Writer]]:
    """So many clients write meanwhile, and nothing of that fails."""
    stopping = Event()
    writers = [Writer(site.client(), index, stopping) for index in range(count)]
    try:
        yield writers
    finally:
        stopping.set()
        for writer in writers:
            writer.thread.join()
    assert [text for writer in writers for text in writer.errors] == []


def wait_until_written(writers: Sequence[Writer], steps: int) -> None:
    """They have done so many steps together from now on."""
    at = sum(writer.steps for writer in writers)
    wait_for(lambda: sum(writer.steps for writer in writers) > at + steps, "it is written")


def held(site: Site, side: int) -> dict[Any, Any]:
    """All that the servers of a room have."""
    found: dict[Any, Any] = {}
    for server in site.rooms[side]:
        client = site.to(server.port)
        if site.kind == "redis":
            for key in client.scan_iter():
                found[key] = client.lrange(key, 0, -1) if key.endswith(b"list") else client.get(key)
        else:
            names = [f"c{one}:{number}" for one in range(4) for number in range(40)]
            found |= client.get_many([*names, *(f"shared:{number}" for number in range(7))])
    return found


def wait_until_equal(site: Site) -> dict[Any, Any]:
    """Both rooms have the same; all of it."""
    site.wait_until_ready(0)
    site.wait_until_ready(1)
    wait_for(lambda: held(site, 0) == held(site, 1), "both rooms have the same", 20)
    return held(site, 0)
