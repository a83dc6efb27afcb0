"""A cache in two rooms above the level that knows: whatever becomes of them, nobody reads what is no longer so."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from tests.kit.key_values import sqlite_level
from tests.kit.mariadb import FULL_COLUMNS, MariaDb
from tests.kit.rooms import Site
from tests.kit.wait import wait_for

# So that a node that is well is not taken for dead because the machine is busy.
PATIENT = "    [instance.level.timeout]\n    read_ms = 1000\n"
BELOW = sqlite_level()
KEYS = 30  # of each client
WRITES = 0.1


class Reader:
    """A client with keys of its own, which it mostly reads and now and then writes: it knows what it must find."""

    def __init__(self, client: Any, index: int, stopping: Event) -> None:
        self.client = client
        self.index = index
        self.stopping = stopping
        self.random = random.Random(index)
        self.values: dict[str, bytes] = {}
        self.wrong: list[str] = []
        self.errors: list[str] = []
        self.reads = 0
        self.thread = Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            key = f"c{self.index}:{self.random.randrange(KEYS)}"
            try:
                if key not in self.values or self.random.random() < WRITES:
                    number += 1
                    self.client.set(key, str(number))
                    self.values[key] = str(number).encode()
                found = self.client.get(key)
            except Exception as error:  # noqa: BLE001  every kind of failure counts
                self.errors.append(repr(error))
                self.values.pop(key, None)  # whether it was written is not known
                continue
            self.reads += 1
            if found != self.values[key]:
                self.wrong.append(f"{key} is {found!r}, not {self.values[key]!r} at {time.time():.3f}")


@pytest.mark.parametrize("how", ["kill", "freeze"])
@pytest.mark.parametrize(("kind", "front"), [("redis", "redis"), ("memcache", "memcache"), ("memcache", "redis")])
def test_nothing_old_is_read_whatever_becomes_of_a_room(
    build: Callable[..., Site], kind: str, front: str, how: str
) -> None:
    kill_twice(build(kind, below=PATIENT + BELOW, front=front), how)


def test_nor_above_a_table_of_mysql(build: Callable[..., Site], mariadb: MariaDb) -> None:
    mariadb.make_table()
    patient = "timeout = { connect_ms = 500, read_ms = 2000 }"
    kill_twice(build("redis", below=PATIENT + mariadb.level(FULL_COLUMNS, patient)), "kill")


def kill_twice(site: Site, how: str) -> None:
    """Readers and writers find what they must while the first room dies and returns."""
    stopping = Event()
    readers = [Reader(site.client(), index, stopping) for index in range(4)]

    def go_on() -> None:
        at = sum(reader.reads for reader in readers)
        wait_for(lambda: sum(reader.reads for reader in readers) > at + 300, "it is read")

    try:
        for _ in range(2):
            site.wait_until_served_by(0)
            site.wait_until_ready(1)
            go_on()
            site.kill(0, how)
            site.wait_until_served_by(1)
            go_on()
            site.revive(0, how)
            site.wait_until_served_by(0)
            go_on()
    finally:
        stopping.set()
        for reader in readers:
            reader.thread.join()
    assert [text for reader in readers for text in reader.wrong] == []
    assert [text for reader in readers for text in reader.errors] == []


def test_what_is_old_is_known_after_a_restart(build: Callable[..., Site]) -> None:
    site = build("memcache", 'folder = "rooms"', below=BELOW)
    client = site.client()
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    client.set("k", "old")
    wait_for(lambda: client.get("k") and any(site.to(one.port, "memcache").get("k") == b"old" for one in site.rooms[0]),
             "it is copied")  # fmt: skip
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    client.set("k", "new")
    site.stop()
    site.revive(0, "freeze")
    site.start('folder = "rooms"')
    again = site.client()
    assert again.get("k") == b"new"
    site.wait_until_served_by(0)
    assert again.get("k") == b"new"
