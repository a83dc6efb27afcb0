"""Caches that have lost everything do not bury the last level."""

from __future__ import annotations

import gevent
import gevent.event
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Level, Server, Table, WriteBack
from hyper_proxy.storage.keyvalue import Put
from hyper_proxy.tunnel.gate import USUAL, Gate
from tests.conn_pool.conftest import turn, until
from tests.tunnel.conftest import KEYS, Build


def test_only_so_many_reads_are_under_way_below(build: Build) -> None:
    stack = build("redis", max_below=3, below_wait_ms=10_000)
    stack.memory.put_many([(key, Put(b"1")) for key in KEYS])
    inside = most = 0

    def pause() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        turn(0.002)
        inside -= 1

    stack.memory.pause = pause
    readers = [gevent.spawn(stack.read, key) for key in KEYS]
    gevent.joinall(readers, timeout=10, raise_error=True)
    assert [reader.value for reader in readers] == [[b"1"]] * len(KEYS)
    assert most == 3


def test_who_waits_too_long_is_told_why(build: Build) -> None:
    stack = build("redis", max_below=1)
    stack.read(KEYS[0])  # connected
    opened = gevent.event.Event()
    stack.memory.pause = lambda: opened.wait(10)
    first = gevent.spawn(stack.read, KEYS[1])
    until(lambda: KEYS[1] in stack.memory.asked, "one is under way")
    with pytest.raises(BackendError, match=r"1 reads are under way to the last level, .* 200 ms") as told:
        stack.read(KEYS[2])
    assert told.value.kind == "queue"
    opened.set()
    first.join(10)
    assert stack.read(KEYS[2]) == [None]  # its turn is free again


def test_without_a_number_it_is_as_wide_as_the_level() -> None:
    servers = tuple(Server("10.0.0.1", port) for port in range(3306, 3309))
    mysql = Level("mysql", servers, max_connections=9, table=Table("t", "k", "v"))
    assert Gate.before("user", WriteBack(), mysql).most == 27
    assert Gate.before("user", WriteBack(max_below=5), mysql).most == 5
    assert Gate.before("user", WriteBack(), Level("sqlite", (Server(file="a.db"),))).most == USUAL
