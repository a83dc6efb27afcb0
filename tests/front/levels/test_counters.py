"""What an operator sees of the levels of an instance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from hyper_proxy.cli import ctl_show
from tests.front.levels.test_two_levels import SQLITE
from tests.kit.fleet import Fleet
from tests.kit.mariadb import FULL_COLUMNS, MariaDb
from tests.kit.ports import free_port
from tests.kit.servers import memcached, redis_server
from tests.kit.wait import wait_for

LAST = "  timeout = { connect_ms = 1000, read_ms = 10000, queue_ms = 10000 }"


class Counted:
    """One worker, a cache of this kind above `below`."""

    def __init__(self, stack: ExitStack, folder: Path, kind: str, below: str, more: str = "", front: str = "") -> None:
        self.cache = stack.enter_context({"redis": redis_server, "memcache": memcached}[kind]())
        self.port = free_port()
        self.config = (
            f'[proxy]\nworkers = 1\ndrain_timeout_s = 1\n[[instance]]\nname = "user"\nprotocol = "redis"\n'
            f'listen = ["127.0.0.1:{self.port}"]\n[instance.write_back]\nnegative_ttl = 60\n{more}\n{front}'
            f'[[instance.level]]\nstorage = "{kind}"\nservers = ["{self.cache.address}"]\n'
            f"timeout = {{ connect_ms = 300, read_ms = 300 }}\n{below}"
        )
        self.fleet = stack.enter_context(Fleet(self.config, folder))
        self.client = stack.enter_context(redis.Redis(port=self.port, protocol=2))

    def row(self) -> dict[str, Any]:
        """The statistics of the instance."""
        row: dict[str, Any] = self.fleet.stats()["instances"]["user"]
        return row

    def of(self, level: str = "1") -> dict[str, int]:
        """Those of one of its levels."""
        return {name: value[level] for name, value in self.row().items() if isinstance(value, dict) and level in value}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.mark.parametrize("kind", ["redis", "memcache"])
def test_misses_copies_and_what_is_known_to_be_nowhere_are_counted(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    counted = Counted(stack, tmp_path, kind, SQLITE)
    client = counted.client
    assert client.mget("a", "b") == [None, None]
    wait_for(lambda: counted.of()["level_fills"] == 2, "it is kept that there is nothing")
    assert counted.of()["level_misses"] == 2
    assert counted.of()["negative_hits"] == 0
    assert client.mget("a", "b") == [None, None]
    assert client.get("a") is None
    assert counted.of()["negative_hits"] == 3
    assert counted.of()["level_misses"] == 2
    client.set("a", "1")
    assert client.get("a") == b"1"  # it is marked: nothing is kept for a while
    assert counted.of()["level_misses"] == 3
    assert counted.row()["marks_owed"] == {"1": 0}

    counted.fleet.write(counted.config.replace("negative_ttl = 60", "negative_ttl = 50"))
    assert counted.fleet.reload().accepted
    assert counted.of()["level_misses"] == 3, "a reload does not begin anew"

    counted.cache.kill()
    assert client.get("b") is None
    assert counted.of()["level_skips"] == 1
    client.set("b", "2")
    wait_for(lambda: counted.row()["marks_owed"] == {"1": 1}, "its copy may be old")
    assert counted.row()["errors"] == {}
    _, metrics = counted.fleet.http("GET", "/metrics")
    assert b'hyper_proxy_instance_level_skips_total{instance="user",level="1"} 1.0' in metrics
    assert b'hyper_proxy_instance_marks_owed{instance="user",level="1"} 1.0' in metrics


def test_levels_have_the_numbers_that_they_have_in_the_file(stack: ExitStack, tmp_path: Path) -> None:
    counted = Counted(stack, tmp_path, "redis", SQLITE, front='[[instance.level]]\nstorage = "local"\n')
    assert counted.client.get("a") is None
    assert counted.row()["level_misses"] == {"2": 1}
    assert counted.row()["local_misses"] == 1


def test_who_waits_for_the_last_level_is_seen(stack: ExitStack, tmp_path: Path, mariadb: MariaDb) -> None:
    counted = Counted(stack, tmp_path, "redis", mariadb.level(FULL_COLUMNS, LAST),
                      more="max_below = 1\nbelow_wait_ms = 700")  # fmt: skip
    lock = stack.enter_context(mariadb.connect()).cursor()
    lock.execute("LOCK TABLES kv WRITE")
    clients = [stack.enter_context(redis.Redis(port=counted.port, protocol=2)) for _ in range(2)]
    for client, key in zip(clients, "ab", strict=True):
        connection = client.connection_pool.get_connection()
        stack.callback(client.connection_pool.release, connection)
        connection.send_command("GET", key)
        wait_for(lambda: counted.row()["below_reads"] == 1, "one is under way")
    wait_for(lambda: counted.row()["below_waiting"] == 1, "the other one waits")
    wait_for(lambda: counted.row()["below_refused"] == 1, "it was not its turn in time")
    row = counted.row()
    lock.execute("UNLOCK TABLES")
    assert (row["below_waiting"], row["below_reads"]) == (0, 1)
    assert row["errors"] == {"queue": 1}


def test_a_table_says_it_level_by_level(stack: ExitStack, tmp_path: Path) -> None:
    counted = Counted(stack, tmp_path, "redis", SQLITE)
    assert counted.client.get("a") is None
    wait_for(lambda: counted.of()["level_fills"] == 1, "it is kept that there is nothing")
    assert counted.client.get("a") is None
    head, row = ctl_show.levels(counted.fleet.stats()).splitlines()
    shown = dict(zip(head.split(), row.split(), strict=True))
    assert (shown["instance"], shown["level"], shown["misses"], shown["fills"], shown["negative"]) == (
        "user", "1", "1", "1", "1",
    )  # fmt: skip
    status, page = counted.fleet.http("GET", "/")
    assert status == 200
    assert b'title="hyper_proxy_instance_negative_hits_total">1</td>' in page
