"""Two levels through a whole fleet: unchanged clients in front, caches in the middle, what knows below."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from hyper_proxy.storage.cache import MARK
from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.mariadb import FULL_COLUMNS, MariaDb
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server
from tests.kit.wait import wait_for

SQLITE = sqlite_level()
KEYS = [f"key:{number}" for number in range(30)]


def cache_level(kind: str, nodes: list[Running]) -> str:
    """A level of two servers."""
    servers = ", ".join(f'"{node.address} {kind}{number}"' for number, node in enumerate(nodes))
    timeout = "timeout = { connect_ms = 500, read_ms = 500 }"
    return f'  [[instance.level]]\n  storage = "{kind}"\n  servers = [{servers}]\n  {timeout}\n'


class Two:
    """A front of each protocol on the same levels: `caches` of one kind above `below`."""

    def __init__(self, stack: ExitStack, folder: Path, kind: str, below: str) -> None:
        start: Callable[[], Running] = {"redis": redis_server, "memcache": memcached}[kind]
        self.kind = kind
        self.caches = [stack.enter_context(start()) for _ in range(2)]
        self.ports = {"redis": free_port(), "memcache": free_port(), "http": free_port()}
        levels = cache_level(kind, self.caches) + below
        self.config = "[proxy]\nworkers = 2\ndrain_timeout_s = 1\n" + "".join(
            f'[[instance]]\nname = "{name}"\nprotocol = "{name}"\nlisten = ["127.0.0.1:{port}"]\n{levels}'
            for name, port in self.ports.items()
        )
        self.fleet = stack.enter_context(Fleet(self.config, folder))
        self.redis = stack.enter_context(redis.Redis(port=self.ports["redis"], decode_responses=True))
        self.memcache = pymemcache.Client(("127.0.0.1", self.ports["memcache"]), timeout=10, default_noreply=False)
        stack.callback(self.memcache.close)

    def http(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of one request."""
        connection = HTTPConnection("127.0.0.1", self.ports["http"], timeout=10)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def kept(self, key: str) -> bytes | None:
        """What the cache server of a key has."""
        found = [_ask(self.kind, node, key) for node in self.caches]
        return next((value for value in found if value is not None), None)


def _ask(kind: str, node: Running, key: str) -> bytes | None:
    value: Any
    if kind == "redis":
        with redis.Redis(port=node.port) as client:
            value = client.get(key)
    else:
        client = pymemcache.Client(("127.0.0.1", node.port))
        value = client.get(key)
        client.close()
    return value


@pytest.fixture(params=["redis", "memcache"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Two]:
    """On a file of sqlite."""
    with ExitStack() as stack:
        yield Two(stack, tmp_path, request.param, SQLITE)


def test_what_one_client_writes_all_read_and_the_cache_keeps(two: Two) -> None:
    two.redis.mset({key: f"value of {key}" for key in KEYS})
    assert two.redis.mget(KEYS) == [f"value of {key}" for key in KEYS]
    assert two.memcache.get_many(KEYS) == {key: f"value of {key}".encode() for key in KEYS}
    # A mark stands for some seconds; then a read is kept above.
    wait_for(lambda: two.redis.get("key:7") and two.kept("key:7") == b"value of key:7", "it is kept", 10)
    two.memcache.set("key:7", b"new")
    assert two.kept("key:7") == MARK
    assert two.redis.get("key:7") == "new"
    assert two.memcache.get("key:7") == b"new"


def test_a_hit_above_does_not_ask_below(two: Two, tmp_path: Path) -> None:
    two.redis.set("a", "1")
    wait_for(lambda: two.redis.get("a") and two.kept("a") == b"1", "it is kept", 10)
    before = two.fleet.stats()["instances"]["redis"]["nodes"]
    assert sum(node["requests"] for label, node in before.items() if label.startswith(two.kind)) > 0
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"keys.db{suffix}").unlink(missing_ok=True)
    assert two.redis.get("a") == "1"


def test_a_dead_cache_costs_nothing_but_time(two: Two) -> None:
    two.redis.mset(dict.fromkeys(KEYS, "1"))
    for node in two.caches:
        node.stop()
    assert two.redis.mget(KEYS) == ["1"] * len(KEYS)
    two.redis.mset(dict.fromkeys(KEYS, "2"))
    assert two.redis.mget(KEYS) == ["2"] * len(KEYS)
    assert two.memcache.get("key:3") == b"2"


def test_numbers_times_and_versions_are_those_below(two: Two) -> None:
    assert [two.redis.incr("n") for _ in range(3)] == [1, 2, 3]
    assert two.memcache.incr("n", 5) == 8
    assert two.redis.get("n") == "8"
    two.redis.set("t", "x", ex=100)
    assert two.redis.get("t") == "x"
    assert 90 < two.redis.ttl("t") <= 100
    value, version = two.memcache.gets("n")
    assert value == b"8"
    assert two.memcache.cas("n", b"9", version) is True
    assert two.memcache.cas("n", b"10", version) is False
    assert two.redis.get("n") == "9"
    assert two.redis.delete("n", "t", "nothing") == 2
    assert two.redis.mget("n", "t") == [None, None]


def test_a_level_can_be_put_above_and_taken_away_by_a_reload(two: Two) -> None:
    two.redis.set("a", "1")
    two.fleet.write(two.config.replace(cache_level(two.kind, two.caches), ""))
    assert two.fleet.reload().accepted
    assert redis_again(two).get("a") == "1"
    redis_again(two).set("a", "2")
    two.fleet.write(two.config)
    assert two.fleet.reload().accepted
    assert redis_again(two).get("a") == "2"


def redis_again(two: Two) -> redis.Redis:
    """A new client: another kind of storage ends the connections."""
    return redis.Redis(port=two.ports["redis"], decode_responses=True)


def test_explain_names_the_server_of_every_level(two: Two) -> None:
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "explain", "-c", str(two.fleet.file), "--json"]
    said = subprocess.run([*command, "redis", "GET", "key:1"], capture_output=True, text=True, check=True).stdout
    above, below = json.loads(said)["keys"][0]["levels"]
    assert (above["level"], above["storage"], below["level"], below["storage"]) == (1, two.kind, 2, "sqlite")
    assert above["node"] in [node.address for node in two.caches]
    two.redis.set("key:1", "x")
    holder = next(node for node in two.caches if _ask(two.kind, node, "key:1") is not None)
    assert above["node"] == holder.address


@pytest.mark.parametrize("kind", ["redis", "memcache"])
def test_above_a_table_of_mysql(mariadb: MariaDb, tmp_path: Path, kind: str) -> None:
    with ExitStack() as stack:
        two = Two(stack, tmp_path, kind, mariadb.level(FULL_COLUMNS))
        mariadb.sql("INSERT INTO kv (k, v) VALUES (%s, %s)", ("from:sql", "row"))
        assert two.redis.mget("from:sql", "nothing") == ["row", None]
        # A read that took long, as the first one may, is not kept.
        wait_for(lambda: two.redis.get("from:sql") and two.kept("from:sql") == b"row", "it is kept", 10)
        mariadb.sql("UPDATE kv SET v = 'behind the back' WHERE k = 'from:sql'")
        assert two.memcache.get("from:sql") == b"row"
        two.memcache.set("from:sql", b"through the proxy", flags=0)
        assert two.redis.get("from:sql") == "through the proxy"
        assert mariadb.sql("SELECT v FROM kv WHERE k = 'from:sql'") == [(b"through the proxy",)]


def test_http_clients_over_the_same_levels(two: Two) -> None:
    assert two.http("PUT", "/v1/http/greeting", b"hello")[0] in (201, 204)
    assert two.redis.get("greeting") == "hello"
    assert two.memcache.get("greeting") == b"hello"
    assert two.http("GET", "/v1/http/greeting") == (200, b"hello")
    wait_for(lambda: two.http("GET", "/v1/http/greeting")[1] and two.kept("greeting") == b"hello", "it is kept", 10)
    two.redis.set("greeting", "good day")
    assert two.http("GET", "/v1/http/greeting") == (200, b"good day")
    assert two.http("DELETE", "/v1/http/greeting")[0] == 204
    assert (two.http("GET", "/v1/http/greeting")[0], two.redis.get("greeting")) == (404, None)


def test_above_a_table_on_two_servers(mariadb: MariaDb, tmp_path: Path) -> None:
    with ExitStack() as stack:
        other = stack.enter_context(MariaDb())
        other.make_table()
        one, both = f'["{mariadb.address}"]', f'["{mariadb.address} m0", "{other.address} m1"]'
        below = mariadb.level(FULL_COLUMNS).replace(one, both)
        two = Two(stack, tmp_path, "memcache", below)
        two.redis.mset(dict.fromkeys(KEYS, "1"))
        assert all(server.sql("SELECT COUNT(*) FROM kv")[0][0] > 3 for server in (mariadb, other))
        assert two.redis.mget(KEYS) == ["1"] * len(KEYS)
        wait_for(lambda: two.redis.mget(KEYS) and two.kept(KEYS[0]) == b"1", "it is kept", 10)
        assert two.memcache.raw_command(f"gat 100 {' '.join(KEYS)}", b"END\r\n").count(b"VALUE") == len(KEYS)
        assert two.redis.delete(*KEYS, "nothing") == len(KEYS)
        assert two.redis.mget(KEYS) == [None] * len(KEYS)
        assert two.memcache.get_many(KEYS) == {}


def test_lushan_is_read_and_never_written(mariadb: MariaDb, tmp_path: Path) -> None:
    """memcached as Lushan: keys have the number of their database there."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(memcached()) for _ in range(2)]
        rule = '  lushan_db = { separator = ":", map = { user = 3 } }\n'
        port = free_port()
        config = f'''[proxy]
workers = 1
[[instance]]
name = "user"
protocol = "memcache"
listen = ["127.0.0.1:{port}"]
{cache_level("lushan", nodes)}{rule}{mariadb.level(FULL_COLUMNS)}'''
        stack.enter_context(Fleet(config, tmp_path))
        client = pymemcache.Client(("127.0.0.1", port), timeout=10, default_noreply=False)
        stack.callback(client.close)
        for node in nodes:  # whichever has the key
            there = pymemcache.Client(("127.0.0.1", node.port), default_noreply=False)
            there.set("3-user:1", b"of lushan")
            there.close()
        mariadb.sql("INSERT INTO kv (k, v) VALUES ('user:1', 'below'), ('user:2', 'below'), ('other', 'below')")
        wanted = {"user:1": b"of lushan", "user:2": b"below", "other": b"below"}
        assert client.get_many(["user:1", "user:2", "other", "nothing"]) == wanted
        client.set("user:2", b"new")
        assert client.get("user:2") == b"new"
        assert [_ask("memcache", node, "3-user:2") for node in nodes] == [None, None]


def test_pipelines_over_levels_are_answered_in_order(two: Two) -> None:
    """Hits of the first level, misses, writes and errors among each other, as one redis would answer them."""
    two.redis.mset({key: f"value of {key}" for key in KEYS})
    wait_for(lambda: two.redis.get(KEYS[0]) and two.kept(KEYS[0]) == b"value of key:0", "something is kept", 10)
    for resp in (2, 3):
        with redis.Redis(port=two.ports["redis"], protocol=resp, decode_responses=True) as client:
            pipeline = client.pipeline(transaction=False)
            wanted: list[object] = []
            for turn, key in enumerate(KEYS):
                pipeline.get(key).get("nothing").mget("nothing", key, KEYS[turn - 1])
                wanted += [f"value of {key}", None, [None, f"value of {key}", f"value of {KEYS[turn - 1]}"]]
                pipeline.set(f"new:{turn}", turn).get(f"new:{turn}").lpush("list", "x").exists(key, "nothing")
                wanted += [True, str(turn), "not served", 1]
            replies = pipeline.execute(raise_on_error=False)
            told = ["not served" if "not served" in str(reply) else reply for reply in replies]
            assert told == wanted


def test_many_clients_read_what_they_have_written(two: Two) -> None:
    """Through two workers and both fronts, while one cache is frozen now and then."""

    def make_step(number: int) -> Callable[[], None]:
        by_redis = redis.Redis(port=two.ports["redis"], socket_timeout=20)
        by_memcache = pymemcache.Client(("127.0.0.1", two.ports["memcache"]), timeout=20, default_noreply=False)
        turns = itertools.count()

        def step() -> None:
            turn = str(next(turns)).encode()
            keys = [f"{number}:{at}" for at in range(4)]
            if int(turn) % 2:
                by_redis.mset(dict.fromkeys(keys, turn))
            else:
                by_memcache.set_many(dict.fromkeys(keys, turn))
            if by_redis.mget(keys) != [turn] * 4 or by_memcache.get_many(keys) != dict.fromkeys(keys, turn):
                raise ValueError("an old value")

        return step

    with Crowd(8, make_step) as crowd:
        for node in (*two.caches, *two.caches):
            before = crowd.done
            node.freeze()
            wait_for(lambda before=before: crowd.done > before + 16, "all go on beside a frozen cache", 30)  # type: ignore[misc]
            node.thaw()
    assert [str(failure) for failure in crowd.failures] == []


def test_a_cache_that_was_out_of_service_has_no_old_copies(two: Two) -> None:
    two.redis.mset(dict.fromkeys(KEYS, "old"))
    wait_for(lambda: two.redis.mget(KEYS) and all(two.kept(key) == b"old" for key in KEYS), "all are kept", 15)
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl", "-c", str(two.fleet.file), "node"]
    for name in two.ports:
        subprocess.run([*command, "drain", name, f"{two.kind}0"], check=True, capture_output=True)
    two.redis.mset(dict.fromkeys(KEYS, "new"))
    for name in two.ports:
        subprocess.run([*command, "ready", name, f"{two.kind}0"], check=True, capture_output=True)
    wait_for(lambda: two.redis.mget(KEYS) == ["new"] * len(KEYS), "the old copies are marked", 10)
