"""Writes go to the room that serves: how fast it is changed, and that nobody notices the return."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest
import redis

from tests.kit.rooms import SIDES, Site
from tests.kit.wait import wait_for

MOST_S = 3.0
"""From the death of a room to the last error; it is half a second where nothing else runs."""


class Load:
    """Clients that write a number under a key of their own and read it back, again and again."""

    def __init__(self, site: Site, clients: int = 6) -> None:
        self.stopping = Event()
        self.errors: list[tuple[float, str]] = []
        self.wrong: list[str] = []
        self.done = 0
        self.threads = [Thread(target=self._run, args=(index, site.client())) for index in range(clients)]
        for thread in self.threads:
            thread.start()

    def _run(self, index: int, client: Any) -> None:
        number = 0
        while not self.stopping.is_set():
            key = f"c{index}:{number % 50}"
            number += 1
            began = time.monotonic()
            try:
                client.set(key, str(number))
                found = client.get(key)
            except Exception as error:  # noqa: BLE001  every kind of failure counts
                self.errors.append((began, repr(error)))
                continue
            self.done += 1
            if found != str(number).encode():
                self.wrong.append(f"{key} is {found!r}, not {number}")

    def go_on(self) -> None:
        """Wait for some more of it."""
        at = self.done
        wait_for(lambda: self.done > at + 50, "requests are answered")

    def stop(self) -> None:
        """Wait until all have ended."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize("how", ["kill", "freeze"])
@pytest.mark.parametrize("kind", ["redis", "memcache"])
def test_a_dead_room_is_replaced_and_returns_unnoticed(build: Callable[..., Site], kind: str, how: str) -> None:
    site = build(kind, 'on_return = "empty"')
    load = Load(site)
    site.wait_until_served_by(0)
    for _ in range(2):
        site.wait_until_ready(1)
        load.go_on()
        died = time.monotonic()
        site.kill(0, how)
        site.wait_until_served_by(1)
        load.go_on()
        errors = [(began - died, text) for began, text in load.errors]
        assert all(0 - 0.5 <= at <= MOST_S for at, _ in errors), errors
        load.errors.clear()
        load.wrong.clear()  # what was written a moment ago is in the room that has died
        site.revive(0, how)
        site.wait_until_served_by(0)
        load.go_on()
        assert load.errors == []
    load.stop()


def test_nothing_old_is_read_after_the_return(build: Callable[..., Site]) -> None:
    site = build("memcache", 'on_return = "empty"')
    client = site.client()
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    keys = [f"k{index}" for index in range(40)]
    for key in keys:
        client.set(key, "old")
    site.kill(0, "freeze")  # it keeps what it has
    site.wait_until_served_by(1)
    for key in keys:
        client.set(key, "new")
    site.revive(0, "freeze")
    site.wait_until_served_by(0)
    assert {client.get(key) for key in keys} <= {None, b"new"}
    site.wait_until_ready(1)
    assert {site.to(server.port).get(key) for server in site.rooms[1] for key in keys} == {None}


def test_what_a_room_holds_is_kept_where_nothing_else_is_said(build: Callable[..., Site]) -> None:
    site = build("redis")
    client = site.client()
    client.set("k", "first")
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    assert client.get("k") is None
    client.set("k", "second")
    site.revive(0, "freeze")
    site.wait_until_served_by(0)
    assert client.get("k") == b"first"


def test_a_server_that_an_operator_takes_out_is_replaced(build: Callable[..., Site]) -> None:
    site = build("redis")
    client = site.client()
    keys = [f"k{index}" for index in range(20)]
    for node in ("n0", "n1"):
        status, answer = site.fleet.post("/node", {"instance": "shop", "node": node, "state": "drain"})
        assert status == 200, answer
    for key in keys:
        client.set(key, "x")
    site.wait_until_served_by(1)
    assert sum(site.to(server.port).dbsize() for server in site.rooms[1]) == len(keys)
    for node in ("n0", "n1"):
        site.fleet.post("/node", {"instance": "shop", "node": node, "state": "ready"})
    site.wait_until_served_by(0)
    assert client.dbsize() == 0


@pytest.mark.parametrize("prefer", SIDES)
def test_the_preferred_room_serves(build: Callable[..., Site], prefer: str) -> None:
    site = build("redis", f'prefer = "{prefer}"')
    site.client().set("k", "x")
    assert sum(site.to(server.port).dbsize() for server in site.rooms[SIDES.index(prefer)]) == 1


def test_a_transaction_ends_with_the_room_that_it_was_begun_in(build: Callable[..., Site]) -> None:
    site = build("redis", "interval_ms = 1000")  # so late the other worker follows
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    keys = [f"k{index}" for index in range(12)]
    begun = [Begun(site, key, watching=index % 2 == 0) for index, key in enumerate(keys)]
    site.revive(0, "freeze")
    site.wait_until_served_by(0)
    client = site.client()
    for one in begun:
        client.set(one.key, "of another client")
        with pytest.raises(redis.RedisError, match="room serves in its place"):
            one.end()
    assert client.mget(keys) == [b"of another client"] * len(keys)
    assert {site.to(server.port).get(key) for server in site.rooms[1] for key in keys} == {None}
    assert client.pipeline(transaction=True).append("k0", "!").execute() == [len(b"of another client!")]


class Begun:
    """A client that is in a transaction: it watches a key, or has had a write of it queued."""

    def __init__(self, site: Site, key: str, watching: bool) -> None:
        self.key = key
        self.client = site.stack.enter_context(redis.Redis(port=site.port, single_connection_client=True))
        self.watching = watching
        self.client.execute_command(*(("WATCH", key) if watching else ("MULTI",)))
        if not watching:
            self._write()

    def _write(self) -> None:
        assert self.client.execute_command("APPEND", self.key, "of the transaction") == b"QUEUED"

    def end(self) -> None:
        """What is left of it."""
        if self.watching:
            self.client.execute_command("MULTI")
            self._write()
        self.client.execute_command("EXEC")
