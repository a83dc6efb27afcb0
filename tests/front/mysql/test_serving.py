"""redis and memcache clients over tables: one key space on both fronts, on many servers, read here, written there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pymemcache
import pytest
import redis

from tests.front.mysql.conftest import WAIT_S, StartFront
from tests.kit.mariadb import MariaDb
from tests.kit.wait import wait_for

HOSTILE = ("it's", 'a"b', "`k`", "a\\", "%s", "😀", "a\x00b", "A", "a", "a ", "'; DROP TABLE kv; --")


@pytest.fixture
def pair(mariadb: MariaDb, own: Callable[[MariaDb], MariaDb]) -> list[MariaDb]:
    """Two servers."""
    return [mariadb, own(MariaDb())]


def test_redis_clients(start_front: StartFront, mariadb: MariaDb) -> None:
    client = start_front([mariadb], workers=2).redis()
    for number, key in enumerate(HOSTILE):
        assert client.set(key, f"value {number}")
    assert client.mget(HOSTILE) == [f"value {number}".encode() for number in range(len(HOSTILE))]
    assert mariadb.sql("SELECT COUNT(*) FROM kv") == [(len(HOSTILE),)]
    assert mariadb.sql("SELECT v FROM kv WHERE k = %s", [b"it's"]) == [(b"value 0",)]
    assert sorted(client.scan_iter(count=3)) == sorted(key.encode() for key in HOSTILE)
    assert client.delete(*HOSTILE, "none") == len(HOSTILE)
    assert client.set("n", 5, px=60_000, nx=True)
    assert client.set("n", 6, nx=True) is None
    assert (client.incrby("n", 10), client.decr("n"), client.append("n", "0")) == (15, 14, 3)
    assert 0 < client.pttl("n") <= 60_000
    assert client.persist("n")
    assert client.msetnx({"x": 1, "y": 2})
    assert not client.msetnx({"y": 3, "z": 3})
    assert client.getset("x", 9) == b"1"
    assert (client.dbsize(), sorted(client.keys("?"))) == (3, [b"n", b"x", b"y"])
    large = bytes(range(256)) * 4096
    assert client.set("large", large)
    assert client.get("large") == large
    with client.pipeline(transaction=False) as pipe:
        for _ in range(50):
            pipe.incr("counter")
            pipe.get("x")
        answers = pipe.execute()
    assert answers[::2] == list(range(1, 51))
    assert set(answers[1::2]) == {b"9"}
    with pytest.raises(redis.ResponseError, match="not served by an instance whose storage is mysql"):
        client.lpush("list", 1)


def test_memcache_clients(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb])
    client = front.memcache()
    assert client.set("a", {"not": "text"}, expire=100)
    assert client.get("a") == {"not": "text"}
    assert mariadb.sql("SELECT f > 0, e > UNIX_TIMESTAMP() FROM kv") == [(1, 1)]
    _, cas = client.gets("a")
    assert client.cas("a", "new", cas)
    assert not client.cas("a", "newer", cas)
    assert not client.add("a", "x")
    assert client.add("n", "7")
    assert (client.incr("n", 5), client.decr("n", 100)) == (12, 0)
    assert client.append("a", "!")
    assert client.get_many(["a", "n", "none"]) == {"a": "new!", "n": "0 "}
    assert client.touch("a", 50)
    assert front.redis().get("a") == b"new!", "the redis front has the same keys"
    assert client.delete("a")
    assert not client.delete("a")
    assert client.flush_all()
    assert mariadb.sql("SELECT * FROM kv") == []


def test_what_a_bare_table_lacks_is_refused(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb])
    front.fleet.write(front.text().replace(', flags = "f", expires = "e", version = "ver", id = "id"', ""))
    assert front.fleet.reload().accepted
    client, other = front.redis(), front.memcache()
    assert client.set("a", 1)
    reason = r"^table kv has no column for a time of expiry \(table.expires\)"
    for ask in (
        lambda: client.set("a", 2, ex=5), lambda: client.expire("a", 5), lambda: client.expireat("a", 5),
    ):  # fmt: skip
        with pytest.raises(redis.ResponseError, match=reason):
            ask()
    with pytest.raises(redis.ResponseError, match=r"no integer column to walk its keys by \(table.id\)"):
        client.keys("*")
    with pytest.raises(pymemcache.exceptions.MemcacheClientError, match="no column for flags"):
        other.set("a", 3)
    with pytest.raises(pymemcache.exceptions.MemcacheClientError, match="versions are not kept"):
        other.gets("a")
    assert other.get("a") == b"1"
    assert client.get("a") == b"1"


def test_keys_are_spread_over_servers(start_front: StartFront, pair: list[MariaDb]) -> None:
    front = start_front(pair)
    client = front.redis()
    here, there = front.keys_on(0, 5), front.keys_on(1, 5)
    assert client.mset({key: key for key in here + there})
    for server, keys in zip(pair, (here, there), strict=True):
        assert sorted(row[0].decode() for row in server.sql("SELECT k FROM kv")) == sorted(keys)
    mixed = [key for two in zip(here, there, strict=True) for key in two]
    assert client.mget([*mixed, "none"]) == [key.encode() for key in mixed] + [None]
    assert client.exists(*mixed) == client.dbsize() == 10
    assert sorted(client.scan_iter(count=2)) == sorted(key.encode() for key in mixed)
    assert client.msetnx({here[0]: 1, here[1]: 1}) is False
    with pytest.raises(redis.ResponseError, match="the keys of this request are on different servers"):
        client.msetnx({here[0]: 1, there[0]: 1})
    assert front.memcache().get_many(mixed) == {key: key.encode() for key in mixed}
    assert client.delete(*mixed) == 10
    assert client.dbsize() == 0


def test_reads_and_writes_go_to_servers_of_their_own(start_front: StartFront, pair: list[MariaDb]) -> None:
    reader, writer = pair
    front = start_front([reader], [writer])
    client = front.redis()
    assert client.set("a", 1)
    assert client.get("a") is None, "nothing replicates here"
    assert client.incr("a") == 2, "a change reads what it changes at the writer"
    assert writer.sql("SELECT v FROM kv") == [(b"2",)]
    reader.sql("INSERT INTO kv (k, v) VALUES ('a', 'replica')")
    assert client.get("a") == b"replica"
    assert client.delete("a") == 1
    assert (writer.sql("SELECT * FROM kv"), client.dbsize()) == ([], 1)
    assert front.node("a")["requests"] > 0
    assert front.node("wa")["connections"] == 1


def test_statistics_of_a_node(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb])
    client = front.redis()
    client.get("a")
    before = front.node()
    for _ in range(10):
        client.get("a")
    node = wait_for(lambda: (now := front.node())["requests"] == before["requests"] + 10 and now, "it is counted")
    assert node["latency_us"]["count"] == before["latency_us"]["count"] + 10
    assert (node["connections"], node["connects"], node["in_flight"], node["errors"]) == (1, 1, 0, {})
    assert node["by_class"]["read"] == before["by_class"]["read"] + 10
    assert node["bytes_in"] > before["bytes_in"]
    assert node["bytes_out"] > before["bytes_out"]


def test_a_worker_opens_no_more_connections_than_it_may(start_front: StartFront, mariadb: MariaDb) -> None:
    times = "max_connections = 3\n  timeout = { connect_ms = 1000, read_ms = 5000, queue_ms = 10000 }"
    front = start_front([mariadb], settings=times)
    failures: list[Exception] = []

    def work() -> None:
        try:
            client = front.redis()
            for _ in range(20):
                client.incr("n")
                client.get("n")
        except redis.RedisError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert failures == []
    assert front.redis().get("n") == b"400"
    assert front.node()["connects"] == 3


def test_a_reload_changes_table_and_pool_between_two_requests(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb])
    client = front.redis()
    mariadb.make_table(name="other")
    client.set("a", "of kv")
    for old, new, expected in (
        ('name = "kv"', 'name = "other"', None),
        ('name = "kv"', 'name = "app.kv"', b"of kv"),
        ('storage = "mysql"', 'storage = "mysql"\n  max_connections = 2', b"of kv"),
    ):
        front.fleet.write(front.text().replace(old, new))
        assert front.fleet.reload().accepted
        assert client.get("a") == expected
    assert front.node()["connections"] == 1
    wait_for(lambda: len(proxied(mariadb)) <= 2, "what is not needed any more is closed")


def proxied(server: MariaDb) -> list[int]:
    """The connections of proxies."""
    return [row[0] for row in server.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'proxy'")]


def test_versions_of_two_workers_differ_and_grow(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb], workers=2)
    clients = [front.memcache() for _ in range(8)]
    clients[0].set("a", "0")
    won = 0
    before = 0
    for number in range(40):
        _, cas = clients[number % 8].gets("a")
        assert int(cas) > before
        before = int(cas)
        won += sum(client.cas("a", f"{number}", cas) for client in clients)
    assert won == 40
    assert time.time() - before / 1e6 < 60

