"""Clients of one protocol over servers of another, through a whole fleet, and what other clients see at the servers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from itertools import product
from pathlib import Path
from typing import Any

import pymemcache
import pytest
import redis

from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, flush_memcached, flush_redis, memcached, redis_server
from tests.kit.wait import wait_for

KEYS = [f"key:{number}" for number in range(30)]
START: dict[str, Callable[[], Running]] = {"redis": redis_server, "memcache": memcached}
FLUSH: dict[str, Callable[[Running], None]] = {"redis": flush_redis, "memcache": flush_memcached}


def level(kind: str, nodes: list[Running], alias: str) -> str:
    """A level over these servers."""
    servers = ", ".join(f'"{node.address} {alias}{number}"' for number, node in enumerate(nodes))
    timeout = "timeout = { connect_ms = 500, read_ms = 1000 }"
    return f'  [[instance.level]]\n  storage = "{kind}"\n  servers = [{servers}]\n  {timeout}\n'


class Mixed:
    """A front of each protocol over the same levels, each of two servers: `kinds` from the first to the last."""

    def __init__(self, stack: ExitStack, folder: Path, *kinds: str) -> None:
        self.nodes = [[stack.enter_context(START[kind]()) for _ in range(2)] for kind in kinds]
        self.flushes = [FLUSH[kind] for kind in kinds]
        self.ports = {name: free_port() for name in ("redis", "memcache", "http")}
        levels = "".join(level(kind, self.nodes[at], f"n{at}-") for at, kind in enumerate(kinds))
        self.config = "[proxy]\nworkers = 2\ndrain_timeout_s = 1\n" + "".join(
            f'[[instance]]\nname = "{name}"\nprotocol = "{name}"\nlisten = ["127.0.0.1:{port}"]\n'
            f"allow = [{self.allowed(name)}]\n{levels}"
            for name, port in self.ports.items()
        )
        self.fleet = stack.enter_context(Fleet(self.config, folder))
        self.redis = stack.enter_context(redis.Redis(port=self.ports["redis"], decode_responses=True))
        self.memcache = pymemcache.Client(("127.0.0.1", self.ports["memcache"]), timeout=10, default_noreply=False)
        stack.callback(self.memcache.close)

    @staticmethod
    def allowed(name: str) -> str:
        """The dangerous commands that are served."""
        return {"redis": '"KEYS", "FLUSHALL"', "memcache": '"FLUSH_ALL"', "http": ""}[name]

    def http(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Status and body."""
        connection = HTTPConnection("127.0.0.1", self.ports["http"], timeout=10)
        fields = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, f"/v1/http/{path}", body, fields)
        response = connection.getresponse()
        status, read = response.status, response.read()
        connection.close()
        return status, read

    def below(self, key: str) -> list[bytes | None]:
        """What each of the last level's servers has, asked without the proxy."""
        return [asked(node, key) for node in self.nodes[-1]]


def asked(node: Running, key: str) -> bytes | None:
    """The value there, whatever kind of server it is."""
    value: Any
    if any("redis-server" in word for word in node.command):
        with redis.Redis(port=node.port) as by_redis:
            value = by_redis.get(key)
    else:
        by_memcache = pymemcache.Client(("127.0.0.1", node.port))
        value = by_memcache.get(key)
        by_memcache.close()
    return value if value is None else bytes(value)


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Mixed]]:
    """Three fronts over servers of one kind, by kind: not to be killed or frozen."""
    with ExitStack() as stack:
        yield {kind: Mixed(stack, tmp_path_factory.mktemp(kind), kind) for kind in START}


def emptied(mixed: Mixed) -> Mixed:
    """The same for the next test."""
    for nodes, flush in zip(mixed.nodes, mixed.flushes, strict=True):
        for node in nodes:
            flush(node)
    return mixed


@pytest.fixture(params=["redis", "memcache"])
def mixed(request: pytest.FixtureRequest, stages: dict[str, Mixed]) -> Mixed:
    """Of either kind."""
    return emptied(stages[request.param])


@pytest.fixture
def over_redis(stages: dict[str, Mixed]) -> Mixed:
    return emptied(stages["redis"])


@pytest.fixture
def over_memcache(stages: dict[str, Mixed]) -> Mixed:
    return emptied(stages["memcache"])


def test_all_fronts_read_what_one_has_written_and_so_does_the_server(mixed: Mixed) -> None:
    mixed.redis.mset({key: f"value of {key}" for key in KEYS})
    assert mixed.memcache.get_many(KEYS) == {key: f"value of {key}".encode() for key in KEYS}
    assert mixed.redis.mget(*KEYS, "nothing") == [*(f"value of {key}" for key in KEYS), None]
    assert [mixed.http("GET", key) for key in KEYS] == [(200, f"value of {key}".encode()) for key in KEYS]
    asked = [mixed.below(key) for key in KEYS]
    assert [sum(value is not None for value in values) for values in asked] == [1] * len(KEYS)
    assert {values[0] is None for values in asked} == {True, False}, "keys are on both servers"
    assert mixed.http("PUT", "a", b"by http") == (201, b"")
    assert (mixed.redis.get("a"), mixed.memcache.get("a")) == ("by http", b"by http")
    mixed.memcache.set("a", b"by memcache")
    assert (mixed.redis.get("a"), mixed.http("GET", "a")) == ("by memcache", (200, b"by memcache"))
    assert mixed.redis.delete("a", "nothing") == 1
    assert (mixed.memcache.get("a"), mixed.http("GET", "a")[0]) == (None, 404)


def test_verbs_do_what_their_protocol_says(mixed: Mixed) -> None:
    assert [mixed.redis.incr("n"), mixed.redis.incrby("n", 40), mixed.redis.decr("n")] == [1, 41, 40]
    assert mixed.memcache.incr("n", 2) == 42
    assert json.loads(mixed.http("POST", "n", b'{"op": "incr"}', Content_Type="application/json")[1]) == {"value": 43}
    assert mixed.memcache.decr("n", 100) == 0
    assert mixed.redis.set("s", "a", nx=True) and not mixed.redis.set("s", "b", nx=True)
    assert mixed.redis.append("s", "bc") == 3
    assert mixed.memcache.prepend("s", b"-") and not mixed.memcache.append("absent", b"x")
    assert (mixed.redis.get("s"), mixed.redis.strlen("s"), mixed.redis.getrange("s", 1, 2)) == ("-abc", 4, "ab")
    assert not mixed.memcache.add("s", b"x") and mixed.memcache.replace("s", b"y")
    assert not mixed.memcache.replace("absent", b"y")
    assert (mixed.redis.getset("s", "z"), mixed.redis.getdel("s"), mixed.redis.get("s")) == ("y", "z", None)
    with pytest.raises(redis.ResponseError, match="not an integer"):
        mixed.redis.set("s", "abc")
        mixed.redis.incr("s")
    with pytest.raises(pymemcache.MemcacheClientError, match="non-numeric"):
        mixed.memcache.incr("s", 1)
    assert mixed.redis.exists("s", "n", "absent", "s") == 3


def test_times_of_expiry_are_kept(mixed: Mixed) -> None:
    mixed.redis.set("a", "1", ex=100)
    assert 98 <= mixed.redis.ttl("a") <= 100
    mixed.redis.append("a", "2")
    assert 98 <= mixed.redis.ttl("a") <= 100, "a change keeps it"
    far = int(time.time()) + 40 * 86_400
    assert mixed.memcache.touch("a", far)
    assert abs(far - time.time() - mixed.redis.ttl("a")) <= 3
    for _ in range(30):
        mixed.redis.setrange("a", 0, "1")
    assert mixed.redis.ttl("a") <= far - time.time() + 2, "many changes do not put it off"
    assert mixed.redis.persist("a") and mixed.redis.ttl("a") == -1
    assert not mixed.redis.persist("a")
    assert mixed.redis.expire("a", 50) and not mixed.redis.expire("absent", 50)
    detailed = json.loads(mixed.http("GET", "a", Accept="application/json")[1])
    assert detailed["value"] == "12" and 48 < detailed["ttl"] <= 50
    mixed.redis.set("b", "1", px=900)
    wait_for(lambda: mixed.redis.get("b") is None, "it ends")
    assert mixed.redis.expire("a", -1) and mixed.memcache.get("a") is None
    assert mixed.redis.getex("n") is None


def test_http_writes_under_a_condition(mixed: Mixed) -> None:
    mixed.http("PUT", "a", b"1")
    connection = HTTPConnection("127.0.0.1", mixed.ports["http"], timeout=10)
    connection.request("GET", "/v1/http/a")
    response = connection.getresponse()
    response.read()
    tag = response.headers["ETag"]
    assert mixed.http("PUT", "a", b"2", If_Match=tag)[0] == 204
    assert mixed.http("PUT", "a", b"3", If_Match=tag)[0] == 412
    assert mixed.http("GET", "a") == (200, b"2")
    connection.close()


def test_counters_of_many_clients_lose_nothing(mixed: Mixed) -> None:
    """Two workers, three protocols, one key: read, change and write happen as one step."""

    def make_step(number: int) -> Callable[[], None]:
        by_redis = redis.Redis(port=mixed.ports["redis"])
        by_memcache = pymemcache.Client(("127.0.0.1", mixed.ports["memcache"]), timeout=20, default_noreply=False)

        def step() -> None:
            if number % 2:
                by_redis.incrbyfloat("sum", 1)
            else:
                assert by_memcache.incr("sum", 1) is not None

        return step

    mixed.redis.set("sum", "0")
    with Crowd(6, make_step) as crowd:
        wait_for(lambda: crowd.done > 300, "they count", 30)
    assert [str(failure) for failure in crowd.failures] == []
    assert int(mixed.redis.get("sum") or "") == crowd.done


def test_redis_has_no_flags_and_no_versions(over_redis: Mixed) -> None:
    with pytest.raises(pymemcache.MemcacheClientError, match="redis has no place for flags"):
        over_redis.memcache.set("a", b"1", flags=1)
    with pytest.raises(pymemcache.MemcacheClientError, match="versions are not kept by this instance's redis storage"):
        over_redis.memcache.gets("a")
    assert over_redis.http("PUT", "a?flags=7", b"1")[0] == 400
    said = check(over_redis)
    assert "HP405" in said and "redis has no flags" in said and said.count("HP405") == 1


def test_other_types_of_redis_are_replaced_and_not_changed(over_redis: Mixed) -> None:
    for node in over_redis.nodes[0]:
        with redis.Redis(port=node.port) as there:
            there.rpush("list", "x")
    assert over_redis.memcache.get("list") is None
    with pytest.raises(pymemcache.MemcacheClientError, match="another type of value than a string"):
        over_redis.memcache.incr("list", 1)
    with pytest.raises(pymemcache.MemcacheClientError, match="another type of value than a string"):
        over_redis.memcache.add("list", b"1")
    assert over_redis.memcache.set("list", b"1")
    assert over_redis.memcache.get("list") == b"1"


def test_the_keys_of_redis_below_another_level_can_be_walked(tmp_path: Path) -> None:
    with ExitStack() as stack:
        two = Mixed(stack, tmp_path, "memcache", "redis")
        two.redis.mset(dict.fromkeys(KEYS, "1"))
        assert set(two.redis.scan_iter(count=7)) == set(KEYS) == set(two.redis.keys("key:*"))
        assert two.redis.dbsize() == len(KEYS)
        assert two.redis.flushall() and two.redis.dbsize() == 0


def test_memcached_keeps_flags_and_versions(over_memcache: Mixed) -> None:
    over_memcache.memcache.set("a", b"1", flags=77)
    assert json.loads(over_memcache.http("GET", "a", Accept="application/json")[1])["flags"] == 77
    over_memcache.redis.append("a", "2")
    assert json.loads(over_memcache.http("GET", "a", Accept="application/json")[1])["flags"] == 77


def test_what_memcached_cannot_do_is_refused(over_memcache: Mixed) -> None:
    with pytest.raises(redis.ResponseError, match="memcached can't list its keys"):
        over_memcache.redis.keys("*")
    with pytest.raises(redis.ResponseError, match="memcached can't list its keys"):
        over_memcache.redis.scan(0)
    with pytest.raises(redis.ResponseError, match="changes each key for itself"):
        over_memcache.redis.msetnx({"a": "1", "b": "2"})
    with pytest.raises(redis.ResponseError, match="can't hold this key"):
        over_memcache.redis.set("x" * 251, "1")
    with pytest.raises(redis.ResponseError, match="after January 2038"):
        over_memcache.redis.set("a", "1", exat=2**31)
    with pytest.raises(redis.ResponseError, match=r"n0-.*object too large for cache"):
        over_memcache.redis.set("a", "x" * 2_000_000)


def test_keys_that_memcached_cannot_spell(over_memcache: Mixed) -> None:
    keys = ["with a blank", "tab\t", "line\r\nget a", "\x00", "é", "x" * 250]
    over_memcache.redis.mset({key: f"value of {key!r}" for key in keys})
    assert over_memcache.redis.mget(*keys, "absent\n") == [*(f"value of {key!r}" for key in keys), None]
    assert over_memcache.redis.delete(*keys) == len(keys)


def test_what_is_no_string_is_refused_with_a_list_of_what_is_served(over_memcache: Mixed) -> None:
    with pytest.raises(redis.ResponseError, match=r"'hset' is not served .* \(it serves: .*SETEX"):
        over_memcache.redis.hset("h", "f", "v")


@pytest.mark.parametrize("kind", ["redis", "memcache"])
def test_a_dead_server_is_named(tmp_path: Path, kind: str) -> None:
    with ExitStack() as stack:
        mixed = Mixed(stack, tmp_path, kind)
        mixed.redis.mset(dict.fromkeys(KEYS, "1"))
        mixed.nodes[0][1].stop()
        failed = [key for key in KEYS if mixed.http("GET", key)[0] != 200]
        assert 0 < len(failed) < len(KEYS)
        assert b"n0-1" in mixed.http("GET", failed[0])[1]
        with pytest.raises(redis.ResponseError, match="n0-1"):
            mixed.redis.incrbyfloat(failed[0], 1)
        with pytest.raises(pymemcache.exceptions.MemcacheServerError, match="n0-1"):
            mixed.memcache.replace(failed[0], b"2")


def check(mixed: Mixed) -> str:
    """What `check` says of the configuration."""
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "check", str(mixed.fleet.file)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_explain_tells_the_server(mixed: Mixed) -> None:
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "explain", "-c", str(mixed.fleet.file), "--json"]
    said = subprocess.run([*command, "http", "GET", "key:1"], capture_output=True, text=True, check=True).stdout
    place = json.loads(said)["keys"][0]["levels"][0]
    mixed.redis.set("key:1", "x")
    holder = next(node for node, value in zip(mixed.nodes[0], mixed.below("key:1"), strict=True) if value is not None)
    assert place["node"] == holder.address


@pytest.mark.parametrize("kinds", list(product(START, START)))
def test_a_cache_above_servers_of_any_kind(tmp_path: Path, kinds: tuple[str, str]) -> None:
    with ExitStack() as stack:
        two = Mixed(stack, tmp_path, *kinds)
        two.redis.mset({key: f"value of {key}" for key in KEYS})
        assert two.redis.mget(KEYS) == [f"value of {key}" for key in KEYS]
        assert two.memcache.get_many(KEYS) == {key: f"value of {key}".encode() for key in KEYS}
        kept = lambda: any(asked(node, "key:7") == b"value of key:7" for node in two.nodes[0])  # noqa: E731
        wait_for(lambda: two.redis.get("key:7") and kept(), "it is kept above", 10)
        for front in (lambda: two.memcache.set("key:7", b"new"), lambda: two.http("PUT", "key:7", b"newer")):
            front()
            values = {str(two.redis.get("key:7")).encode(), two.memcache.get("key:7"), two.http("GET", "key:7")[1]}
            assert len(values) == 1 and values <= {b"new", b"newer"}
        assert sorted(value for value in two.below("key:7") if value) == [b"newer"]
        assert [two.redis.incr("n") for _ in range(3)] == [1, 2, 3]
        two.redis.set("t", "x", ex=1)
        wait_for(lambda: two.redis.get("t") is None, "it ends")
        for command in (["HSET", "h", "f", "v"], ["MULTI"], ["WATCH", "h"]):
            what = f"'{command[0].lower()}' is not served by an instance whose storage is {kinds[1]}"
            with pytest.raises(redis.ResponseError, match=f"{what} below other levels"):
                two.redis.execute_command(*command)


def test_the_same_protocol_on_one_level_is_still_forwarded(over_redis: Mixed) -> None:
    """Everything that redis can do: a hash, a transaction."""
    assert over_redis.redis.hset("h", "f", "v") == 1
    assert over_redis.redis.pipeline(transaction=True).set("a", "1").incr("a").execute() == [True, 2]
    began = time.monotonic()
    assert over_redis.redis.blpop("nothing", 0.1) is None and time.monotonic() - began < 5
