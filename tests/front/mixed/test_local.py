"""Copies in the workers' own memory, through whole fleets: nobody may read what was written over."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import memcached, redis_server
from tests.kit.wait import wait_for

SQLITE = sqlite_level()
LOCAL = '  [[instance.level]]\n  storage = "local"\n'

ALLOWED = {"redis": '"FLUSHALL"', "memcache": "", "http": ""}


class Copied:
    """A front of each protocol, each with copies of its own, over the same `below`."""

    def __init__(
        self, stack: ExitStack, folder: Path, below: str = SQLITE, local: str = LOCAL, ttl: float = 300
    ) -> None:
        self.ports = {name: free_port() for name in ("redis", "memcache", "http")}
        back = f"  write_back = {{ ttl = {ttl}, negative_ttl = {ttl} }}\n"
        self.config = "[proxy]\nworkers = 3\ndrain_timeout_s = 4\n" + "".join(
            f'[[instance]]\nname = "{name}"\nprotocol = "{name}"\nlisten = ["127.0.0.1:{port}"]\n'
            f"allow = [{ALLOWED[name]}]\n{back}{local}{below}"
            for name, port in self.ports.items()
        )
        self.file = folder / "keys.db"
        self.fleet = stack.enter_context(Fleet(self.config, folder))
        self.stack = stack

    def redis(self) -> redis.Redis:
        """A new connection, to whatever worker."""
        client = redis.Redis(port=self.ports["redis"], single_connection_client=True, socket_timeout=20)
        return self.stack.enter_context(client)

    def memcache(self) -> pymemcache.Client:
        """The same by memcache."""
        client = pymemcache.Client(("127.0.0.1", self.ports["memcache"]), timeout=20, default_noreply=False)
        self.stack.callback(client.close)
        return client

    def http(self, key: str) -> bytes | None:
        """GET on a new connection."""
        connection = HTTPConnection("127.0.0.1", self.ports["http"], timeout=20)
        connection.request("GET", f"/v1/http/{key}")
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return body if response.status == 200 else None

    def behind_the_back(self, key: str, value: bytes) -> None:
        """Write to the file as another program would."""
        with sqlite3.connect(self.file, timeout=10) as there:
            there.execute("UPDATE item SET value = ? WHERE key = ?", (value, key.encode()))
        there.close()


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Copied]:
    with ExitStack() as stack:
        yield Copied(stack, tmp_path)


def test_a_copy_is_served_without_asking_below(copied: Copied) -> None:
    client = copied.redis()
    client.set("a", "1")
    assert client.get("a") == b"1"
    copied.behind_the_back("a", b"2")
    assert client.get("a") == b"1", "the file was not asked"
    assert client.mget("a", "absent") == [b"1", None]
    client.append("a", "!")
    assert client.get("a") == b"2!"
    row = copied.fleet.stats()["instances"]["redis"]
    assert (row["local_hits"], row["local_keys"]) == (2, 2), row
    assert row["local_misses"] >= 3 and 2 * 400 < row["local_bytes"] < 2000


def test_what_one_connection_writes_all_others_read_on_any_front(copied: Copied) -> None:
    many = [copied.redis() for _ in range(12)]
    others = [copied.memcache() for _ in range(12)]
    for turn in range(30):
        writer = random.Random(turn).randrange(3)
        value = str(turn).encode()
        if writer == 0:
            many[turn % 12].set("a", value)
        elif writer == 1:
            others[turn % 12].set("a", value)
        else:
            connection = HTTPConnection("127.0.0.1", copied.ports["http"], timeout=20)
            connection.request("PUT", "/v1/http/a", value)
            assert connection.getresponse().status in (201, 204)
            connection.close()
        assert {client.get("a") for client in many} | {client.get("a") for client in others} == {value}
        assert copied.http("a") == value
    many[0].delete("a")
    assert {client.get("a") for client in many} | {client.get("a") for client in others} == {None}
    others[0].add("a", b"again")
    assert {client.get("a") for client in many} | {copied.http("a")} == {b"again"}
    assert many[3].flushall()
    assert {client.get("a") for client in many} | {client.get("a") for client in others} == {None}


class Model:
    """What may be read: each write is a number that grows. Who reads must find what had been written before he began
    (`least`), and what anybody had read before he began."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.locks = {key: threading.Lock() for key in keys}
        self.notes = threading.Lock()
        self.next = dict.fromkeys(keys, 1)
        self.least = dict.fromkeys(keys, 0)


def play(copied: Copied, model: Model, seed: int) -> Callable[[], None]:
    """A client that writes and reads at random and looks whether it reads anything old."""
    source = random.Random(seed)
    by_redis, by_memcache = copied.redis(), copied.memcache()

    def step() -> None:
        key = source.choice(model.keys)
        if source.random() < 0.25:
            with model.locks[key]:
                number = model.next[key]
                model.next[key] += 1
                if source.random() < 0.5:
                    by_redis.set(key, number)
                else:
                    by_memcache.set(key, str(number).encode())
                with model.notes:
                    model.least[key] = max(model.least[key], number)
            return
        least = dict(model.least)
        if source.random() < 0.5:
            found: dict[str, Any] = {key: by_redis.get(key) if source.random() < 0.5 else by_memcache.get(key)}
        else:
            found = dict(zip(model.keys, by_redis.mget(model.keys), strict=True))
        for name, value in found.items():
            if int(value or 0) < least[name]:
                raise ValueError(f"{name}: {value!r} was read when {least[name]} was there already")
            with model.notes:
                model.least[name] = max(model.least[name], int(value or 0))

    return step


@pytest.mark.parametrize("kind", ["sqlite", "redis", "memcache", "redis above sqlite"])
def test_no_connection_reads_what_was_written_over(tmp_path: Path, kind: str) -> None:
    """Random writes and reads of 12 clients over 3 workers and two fronts."""
    with ExitStack() as stack:
        below = SQLITE if "sqlite" in kind else ""
        if kind != "sqlite":
            server = stack.enter_context(memcached() if kind == "memcache" else redis_server())
            name = kind.partition(" ")[0]
            below = f'  [[instance.level]]\n  storage = "{name}"\n  servers = ["{server.address} n"]\n' \
                    f"  timeout = {{ connect_ms = 2000, read_ms = 5000 }}\n{below}"  # fmt: skip
        copied = Copied(stack, tmp_path, below)
        model = Model([f"key:{number}" for number in range(4)])
        with Crowd(12, lambda number: play(copied, model, number)) as crowd:
            wait_for(lambda: crowd.done > 4000 or crowd.failures, "they have played", 60)
        assert [str(failure) for failure in crowd.failures] == []
        assert min(model.least.values()) > 20


def test_a_copy_ends_with_its_item(copied: Copied) -> None:
    client = copied.redis()
    client.set("a", "1", px=1000)
    assert client.get("a") == b"1"
    wait_for(lambda: client.get("a") is None, "it ends")
    client.set("a", "x")
    assert client.get("a") == b"x"
    client.pexpire("a", 300)
    wait_for(lambda: client.get("a") is None, "the new time holds")


def test_a_copy_ends_with_its_ttl(tmp_path: Path) -> None:
    with ExitStack() as stack:
        copied = Copied(stack, tmp_path, ttl=1)
        client = copied.redis()
        client.set("b", "1")
        assert client.get("b") == b"1"
        copied.behind_the_back("b", b"2")
        wait_for(lambda: client.get("b") == b"2", "copies stay for a second, with jitter")


def test_memory_is_bounded(tmp_path: Path) -> None:
    with ExitStack() as stack:
        copied = Copied(stack, tmp_path, local=LOCAL + '  max_bytes = "64KB"\n')
        client = copied.redis()
        values = {f"key:{number}": str(number) * 100 for number in range(500)}
        client.mset(values)
        client.mset({"large": "x" * 9000, "hot": "1"})
        assert client.get("large") == b"x" * 9000 and client.get("hot") == b"1"
        for key, value in values.items():
            assert client.get(key) == value.encode() and client.get("hot") == b"1"
        for key in ("hot", "key:499", "key:0", "large"):
            copied.behind_the_back(key, b"2")
        assert client.mget("hot", "key:499", "key:0", "large") == [b"1", b"499" * 100, b"2", b"2"]


def test_upgrades_and_reloads_leave_no_hole(copied: Copied) -> None:
    """While the old workers let their clients finish, both generations read and write."""
    old = [copied.redis() for _ in range(6)]
    old[0].set("a", "0")
    master = copied.fleet.stats()["config"]["generation"]
    copied.fleet.send_signal(signal.SIGUSR2)
    copied.fleet.wait_log("upgrade.took_over", 20)
    new = [copied.redis() for _ in range(6)]
    for turn in range(1, 40):
        (old, new)[turn % 2][turn % 6].set("a", turn)
        for client in (*old, *new):
            assert client.get("a") == str(turn).encode(), (turn, client in old)
    assert copied.fleet.stats()["config"]["generation"] == master + 1
    copied.fleet.write(copied.config.replace("ttl = 300", "ttl = 200"))
    assert copied.fleet.reload().accepted
    again = copied.redis()
    again.set("a", "x")
    assert {client.get("a") for client in new} == {b"x"}


def test_a_worker_that_is_killed_leaves_no_old_copy(copied: Copied) -> None:
    client = copied.redis()
    for turn in range(3):
        client.set("a", turn)
        assert copied.redis().get("a") == str(turn).encode()
        copied.fleet.kill_worker(turn)
        client = redis.Redis(port=copied.ports["redis"], socket_timeout=20, retry_on_error=[redis.ConnectionError])
    client.set("a", "new")
    assert {copied.redis().get("a") for _ in range(9)} == {b"new"}


def check(folder: Path, config: str) -> str:
    """What `check` says."""
    file = folder / "checked.toml"
    file.write_text(config)
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "check", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


HEAD = '[[instance]]\nname = "a"\nprotocol = "redis"\nlisten = ["127.0.0.1:7000"]\n'
OTHER = HEAD.replace('"a"', '"b"').replace("7000", "7001")


def test_check_refuses_what_could_not_be_coherent(tmp_path: Path) -> None:
    assert "ok, 1 instance" in check(tmp_path, HEAD + LOCAL + SQLITE)
    assert "ok, 2 instance" in check(tmp_path, HEAD + LOCAL + SQLITE + OTHER + LOCAL + SQLITE)
    said = check(tmp_path, HEAD + LOCAL + SQLITE + OTHER + SQLITE)
    assert "HP213" in said and "instance 'b' writes to" in said and "keys.db" in said
    assert "add that level" in check(tmp_path, HEAD + LOCAL)
    assert "local cannot be between two levels; redis, memcache, lushan can" in check(
        tmp_path, HEAD + SQLITE.replace("sqlite", "redis").replace("keys.db", "127.0.0.1:1") + LOCAL + SQLITE
    )
    routed = SQLITE.replace("sqlite", "redis").replace("keys.db", "127.0.0.1:1") + '  route = "main"\n'
    assert "the last of several levels has no route" in check(tmp_path, HEAD + LOCAL + routed)
    assert "ok, 1 instance" in check(tmp_path, HEAD + routed)
    assert "servers has no meaning for local" in check(tmp_path, HEAD + LOCAL + '  servers = ["x"]\n' + SQLITE).replace(
        ": ", " "
    ).replace("instance[0].level[0].", "")


def test_explain_tells_of_the_copy(copied: Copied) -> None:
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "explain", "-c", str(copied.fleet.file)]
    said = subprocess.run([*command, "redis", "GET", "a"], capture_output=True, text=True, check=True).stdout
    assert "a copy in each worker" in said
    as_json = subprocess.run(
        [*command, "--json", "redis", "GET", "a"], capture_output=True, text=True, check=True
    ).stdout
    assert [place["storage"] for place in json.loads(as_json)["keys"][0]["levels"]] == ["local", "sqlite"]


def reached(client: redis.Redis) -> bool:
    """Does the server below answer? After a failure it is left alone for a moment."""
    with suppress(redis.ResponseError):
        return client.exists("other") == 0
    return False


def test_a_write_that_failed_and_was_done_all_the_same(tmp_path: Path) -> None:
    """Its server was too slow to answer, and writes when it can again: nobody goes on reading the old value."""
    with ExitStack() as stack:
        server = stack.enter_context(redis_server())
        below = f'  [[instance.level]]\n  storage = "redis"\n  servers = ["{server.address}"]\n'
        copied = Copied(stack, tmp_path, below + "  timeout = { connect_ms = 500, read_ms = 500 }\n")
        many = [copied.redis() for _ in range(6)]
        many[0].set("a", "old")
        assert {client.get("a") for client in many} == {b"old"}
        server.freeze()
        with pytest.raises(redis.ResponseError, match="within"):
            many[0].set("a", "new")
        server.thaw()
        there = stack.enter_context(redis.Redis(port=server.port))
        wait_for(lambda: there.get("a") == b"new", "it is written after all", 10)
        wait_for(lambda: reached(many[0]), "the proxy reaches it again", 10)
        assert {client.get("a") for client in many} == {b"new"}


def test_copies_can_be_put_above_and_taken_away_by_a_reload(copied: Copied) -> None:
    def again() -> redis.Redis:
        return redis.Redis(port=copied.ports["redis"], socket_timeout=20)

    again().set("a", "1")
    for config, value in ((copied.config.replace(LOCAL, ""), "2"), (copied.config, "3")):
        without_copies = re.sub(r"  write_back = .*\n", "", config) if LOCAL not in config else config
        copied.fleet.write(without_copies)
        verdict = copied.fleet.reload()
        assert verdict.accepted, verdict.body
        assert again().set("a", value)
        assert {again().get("a") for _ in range(6)} == {value.encode()}
