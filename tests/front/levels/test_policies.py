"""What is said of the levels of an instance, as clients of a whole fleet see it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from tests.front.levels.test_two_levels import KEYS, SQLITE, cache_level
from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server
from tests.kit.wait import wait_for

CACHES: dict[str, Callable[[], Running]] = {"redis": redis_server, "memcache": memcached}


class Stage:
    """Fronts over two cache servers of one kind, of which `policy` is said, above `below`."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder

    def up(
        self, kind: str, policy: str, below: str = SQLITE, front: str = "redis", workers: int = 2, more: str = ""
    ) -> None:
        self.caches = [self.stack.enter_context(CACHES[kind]()) for _ in range(2)]
        self.port = free_port()
        self.config = f"""[proxy]
workers = {workers}
drain_timeout_s = 5
[[instance]]
name = "user"
protocol = "{front}"
listen = ["127.0.0.1:{self.port}"]
{more}
{cache_level(kind, self.caches)}  distribution = "modula"
{policy}
{below}"""
        self.kind = kind
        self.fleet = self.stack.enter_context(Fleet(self.config, self.folder))

    def client(self, **options: Any) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True, **options)

    def held_by(self, node: Running) -> set[str]:
        """Those of KEYS that a cache server has itself."""
        if self.kind == "redis":
            with redis.Redis(port=node.port, decode_responses=True) as client:
                return {key for key, value in zip(KEYS, client.mget(KEYS), strict=True) if value}
        there = pymemcache.Client(("127.0.0.1", node.port))
        found = there.get_many(KEYS)
        there.close()
        return set(found)

    def keep_all(self, client: redis.Redis) -> list[set[str]]:
        """Read until the caches have everything; the keys of each."""
        wait_for(lambda: client.mget(KEYS) and sum(len(self.held_by(node)) for node in self.caches) == len(KEYS),
                 "all is kept", 20)  # fmt: skip
        return [self.held_by(node) for node in self.caches]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(stack, tmp_path)


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("on_partial", ["error", "nil", "element"])
def test_on_partial_holds_over_levels(stage: Stage, kind: str, on_partial: str) -> None:
    stage.up(kind, '  on_error = "fail"\n  write = "through"\n', more=f'on_partial = "{on_partial}"')
    client = stage.client()
    client.mset(dict.fromkeys(KEYS, "1"))
    lost, left = stage.keep_all(client)
    stage.caches[0].kill()
    if on_partial == "error":
        with pytest.raises(redis.ResponseError, match=f"instance 'user' node '{kind}0"):
            client.mget(KEYS)
    else:
        pipeline = client.pipeline(transaction=False)
        pipeline.mget(KEYS)
        (values,) = pipeline.execute(raise_on_error=False)
        told = dict(zip(KEYS, values, strict=True))
        assert {key for key in KEYS if told[key] == "1"} == left
        if on_partial == "nil":
            assert {key for key in KEYS if told[key] is None} == lost
        else:
            assert all(isinstance(told[key], redis.ResponseError) for key in lost)
            assert f"node '{kind}0" in str(told[min(lost)])
    with pytest.raises(redis.ResponseError, match="node"):
        client.get(min(lost))
    assert client.get(min(left)) == "1"


def test_on_partial_holds_for_memcache_clients_over_levels(stage: Stage) -> None:
    stage.up("memcache", '  on_error = "fail"\n  write = "through"\n', front="memcache", more='on_partial = "nil"')
    client = pymemcache.Client(("127.0.0.1", stage.port), timeout=10, default_noreply=False)
    client.set_many(dict.fromkeys(KEYS, b"1"))
    lost, left = (stage.held_by(node) for node in stage.caches)
    assert lost and left and len(lost | left) == len(KEYS)
    stage.caches[0].kill()
    assert set(client.get_many(KEYS)) == left
    client.close()


@pytest.mark.parametrize("kind", CACHES)
def test_what_a_client_writes_through_is_above_at_once_and_after_the_caches_die(stage: Stage, kind: str) -> None:
    stage.up(kind, '  write = "through"\n')
    client = stage.client()
    client.mset(dict.fromkeys(KEYS, "1"))
    assert client.incrby(KEYS[0], 4) == 5
    assert set.union(*(stage.held_by(node) for node in stage.caches)) == set(KEYS)
    for node in stage.caches:
        node.kill()
    assert client.mget(KEYS) == ["5", *["1"] * (len(KEYS) - 1)]
    client.mset(dict.fromkeys(KEYS, "2"))
    for node in stage.caches:
        node.start()
    assert client.mget(KEYS) == ["2"] * len(KEYS)


@pytest.mark.parametrize("kind", CACHES)
def test_clients_read_what_they_have_written_through_caches_that_die(stage: Stage, kind: str) -> None:
    """Through two workers; a cache is killed, and comes back empty, now and then."""
    stage.up(kind, '  write = "through"\n')

    def make_step(number: int) -> Callable[[], None]:
        client = stage.client(socket_timeout=20)
        turns = itertools.count()

        def step() -> None:
            turn = str(next(turns))
            keys = [f"{number}:{at}" for at in range(4)]
            client.mset(dict.fromkeys(keys, turn))
            if client.mget(keys) != [turn] * 4 or [client.get(key) for key in keys] != [turn] * 4:
                raise ValueError("an old value")

        return step

    with Crowd(8, make_step) as crowd:
        for node in (*stage.caches, *stage.caches):
            before = crowd.done
            node.kill()
            wait_for(lambda before=before: crowd.done > before + 16, "all go on without a cache", 30)  # type: ignore[misc]
            node.start()
            before = crowd.done
            wait_for(lambda before=before: crowd.done > before + 16, "all go on with it", 30)  # type: ignore[misc]
    assert [str(failure) for failure in crowd.failures] == []


@pytest.mark.parametrize("kind", CACHES)
def test_an_optional_level_that_stands_still_costs_its_deadline(stage: Stage, kind: str) -> None:
    stage.up(kind, "  optional = true\n  deadline_ms = 40\n")
    client = stage.client()
    client.mset(dict.fromkeys(KEYS, "1"))
    slow, _ = stage.keep_all(client)
    stage.caches[0].freeze()
    times = []
    for key in (min(slow), max(slow), min(slow)):
        began = time.monotonic()
        assert client.get(key) == "1"
        times.append(time.monotonic() - began)
    assert min(times) < 0.4, times  # read_ms is 500
    assert client.mget(KEYS) == ["1"] * len(KEYS)
    stage.caches[0].thaw()
    wait_for(lambda: stage.fleet.stats()["instances"]["user"]["nodes"][f"{kind}0"]["in_flight"] == 0, "all is answered")
    assert [client.get(key) for key in KEYS] == ["1"] * len(KEYS)
    assert stage.fleet.stats()["instances"]["user"]["nodes"][f"{kind}0"]["errors"]["late"] >= 3


def test_what_a_fast_server_lacks_is_asked_below_before_a_slow_one_has_answered(stage: Stage) -> None:
    below = stage.stack.enter_context(redis_server())
    level = f'  [[instance.level]]\n  storage = "redis"\n  servers = ["{below.address} below"]\n'
    stage.up("redis", "", level)
    client = stage.client()
    client.mset(dict.fromkeys(KEYS, "1"))
    stage.keep_all(client)
    for node in stage.caches:
        node.ask(b"FLUSHALL\r\n")
    with redis.Redis(port=below.port) as there:
        there.config_resetstat()
        stage.caches[0].freeze()
        answered = threading.Event()
        values: list[Any] = []

        def read() -> None:
            values.append(client.mget(KEYS))
            answered.set()

        reader = threading.Thread(target=read)
        reader.start()
        idle = {"cmdstat_ping", "cmdstat_echo", "cmdstat_config|resetstat", "cmdstat_info", "cmdstat_client|setinfo"}
        wait_for(lambda: set(there.info("commandstats")) - idle, "the level below is asked")
        assert not answered.is_set()
        stage.caches[0].thaw()
        reader.join(10)
    assert values == [["1"] * len(KEYS)]


def test_what_is_written_behind_is_below_when_the_fleet_has_ended(stage: Stage, tmp_path: Path) -> None:
    stage.up("redis", '  write = "behind"\n', workers=1)
    client = stage.client()
    client.mset(dict.fromkeys(KEYS, "1"))
    assert client.incrby(KEYS[0], 4) == 5
    for key in KEYS[1:]:
        client.set(key, "2")
    assert client.mget(KEYS) == ["5", *["2"] * (len(KEYS) - 1)]
    row = stage.fleet.stats()["instances"]["user"]
    assert row["behind_lost"] == 0 and {"behind", "behind_retries"} <= row.keys()
    assert stage.fleet.stop() == 0
    for node in stage.caches:
        node.ask(b"FLUSHALL\r\n")
    with Fleet(stage.config, tmp_path):
        assert stage.client().mget(KEYS) == ["5", *["2"] * (len(KEYS) - 1)]


@pytest.mark.parametrize("below", ["redis", "memcache"])
def test_a_value_that_is_too_large_below_is_lost_alone(stage: Stage, below: str) -> None:
    start = {"redis": lambda: redis_server("--proto-max-bulk-len", "1mb"), "memcache": memcached}[below]
    server = stage.stack.enter_context(start())
    last = f'  [[instance.level]]\n  storage = "{below}"\n  servers = ["{server.address} last"]\n'
    stage.up("redis", '  write = "behind"\n', below=last, workers=1)
    client = stage.client()
    client.set("large", "x" * (3 << 20))
    for key in KEYS:
        client.set(key, "1")
    there: Any = redis.Redis(port=server.port) if below == "redis" else pymemcache.Client(("127.0.0.1", server.port))
    wait_for(lambda: all(there.get(key) == b"1" for key in KEYS), "all others are below")
    wait_for(lambda: not stage.fleet.stats()["instances"]["user"]["behind"], "the worker has heard that they are")
    assert stage.fleet.stats()["instances"]["user"]["behind_lost"] == 1
    assert client.append(KEYS[0], "2") == 2
    there.close()


def test_a_reload_that_ends_writing_behind_loses_nothing(stage: Stage) -> None:
    stage.up("redis", '  write = "behind"\n', workers=1)
    client = stage.client()
    for turn in range(3):
        client.mset(dict.fromkeys(KEYS, f"{turn} behind"))
        stage.fleet.write(stage.config.replace('"behind"', '"invalidate"'))
        assert stage.fleet.reload().accepted
        assert client.mget(KEYS) == [f"{turn} behind"] * len(KEYS)
        client.mset(dict.fromkeys(KEYS, f"{turn} through"))
        assert client.mget(KEYS) == [f"{turn} through"] * len(KEYS)
        stage.fleet.write(stage.config)
        assert stage.fleet.reload().accepted


def test_a_read_only_level_that_answers_misses_itself(stage: Stage) -> None:
    stage.up("redis", '  read_only = true\n  on_miss = "fail"\n')
    client = stage.client()
    client.set(KEYS[0], "below")
    assert client.get(KEYS[0]) is None
    assert client.mget(KEYS) == [None] * len(KEYS)
    for node in stage.caches:
        node.ask(b"SET key:0 filled-by-others\r\n")
    assert client.get(KEYS[0]) == "filled-by-others"
    assert client.set(KEYS[0], "x", xx=True) is True
    assert client.mget(KEYS[0], "nothing") == ["filled-by-others", None]


def test_explain_tells_the_policies(stage: Stage) -> None:
    stage.up("redis", '  write = "through"\n  optional = true\n  deadline_ms = 7\n')
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "explain", "-c", str(stage.fleet.file), "--json"]

    def way(*words: str) -> str:
        said = subprocess.run([*command, "user", *words], capture_output=True, text=True, check=True).stdout
        return str(json.loads(said)["way"])

    read = "what it lacks is asked below, when it fails the next one is asked, it is passed by after 7 ms"
    assert f"level 1 (redis): {read}" in way("GET", "a")
    assert "level 1 (redis): a write puts the new value there, it is passed by after 7 ms" in way("SET", "a", "1")
