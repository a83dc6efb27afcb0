"""redis and memcached as key spaces do what sqlite does, as far as they can; what they can't is refused."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gevent
import pytest

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.storage.keyvalue import (
    REMOVE,
    Edit,
    Expire,
    Item,
    KeyValue,
    Mode,
    NotANumber,
    NumberOverflow,
    Outcome,
    Put,
)
from tests.kit.key_values import open_memcache, open_redis, open_sqlite
from tests.kit.servers import Running, memcached

KEYS = [b"key:%d" % number for number in range(4)]
VALUES = [b"", b"1", b"-5", b"17", b"9223372036854775807", b"text", b"x" * 3000, b"\r\n\x00"]
FAR = float(int(time.time()) + 5000)


@pytest.fixture(params=["redis", "memcache"])
def server_kv(request: pytest.FixtureRequest) -> Iterator[KeyValue]:
    """Over three servers of each kind, empty."""
    nodes: Sequence[Running] = request.getfixturevalue("redis_nodes" if request.param == "redis" else "memcached_nodes")
    with (open_redis if request.param == "redis" else open_memcache)(*nodes) as kv:
        yield kv


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[KeyValue]:
    with open_sqlite(tmp_path) as kv:
        yield kv


def edited(kv: KeyValue, key: bytes, edits: list[Edit]) -> Any:
    """One key, named as often as there are edits."""

    def change(items: list[Item | None]) -> tuple[list[Edit], bytes | None]:
        here: list[Edit] = [None if isinstance(edit, Expire) and not items[0] else edit for edit in edits]
        return here, items[0].value if items[0] else None

    return kv.update([key] * len(edits), change)[0]


def step(source: random.Random) -> Callable[[KeyValue], Any]:
    """A random operation."""
    key, value, some = source.choice(KEYS), source.choice(VALUES), source.sample(KEYS, source.randint(1, 4))
    ends = source.choice([None, None, FAR, FAR + 100, time.time() - 5])
    edits = source.choices([Put(value, 0, ends), Put(b"2"), REMOVE, Expire(FAR), None], k=source.randint(1, 3))
    delta = source.choice([1, -1, 5, -1000, 2**62])
    return source.choice([
        lambda kv: kv.put_many([(one, Put(value, 0, ends)) for one in some]),
        lambda kv: kv.store(key, value, 0, ends, source.choice([Mode.SET, Mode.ADD, Mode.REPLACE])),
        lambda kv: kv.put_many_if_absent([(key, Put(value, 0, ends))]),
        lambda kv: kv.delete_many([*some, *some]),
        lambda kv: kv.append(key, value, create=True),
        lambda kv: kv.append(key, b"+", create=False),
        lambda kv: kv.prepend(key, b"-"),
        lambda kv: kv.incr_signed(key, delta),
        lambda kv: [item and item.value for item in kv.expire_many(some, ends)],
        lambda kv: kv.persist(key),
        lambda kv: edited(kv, key, edits),
    ])  # fmt: skip


def outcome(kv: KeyValue, operation: Callable[[KeyValue], Any]) -> Any:
    """What it returns, or which of the client's faults it is."""
    try:
        return operation(kv)
    except (NotANumber, NumberOverflow) as fault:
        return type(fault)


def contents(kv: KeyValue) -> list[Any]:
    """All that is there; times to some seconds, for memcached's clock is coarse."""
    return [
        item and (item.value, item.flags, item.expires_at and pytest.approx(item.expires_at, abs=4))
        for item in found(kv)
    ]


def found(kv: KeyValue) -> list[Any]:
    """The items."""
    return list(kv.get_many(KEYS))


def test_random_operations_do_the_same_as_with_sqlite(server_kv: KeyValue, sqlite: KeyValue) -> None:
    for seed in range(1500):
        wanted = outcome(sqlite, step(random.Random(seed)))
        assert outcome(server_kv, step(random.Random(seed))) == wanted, seed
        there = [item and (item.value, item.flags, item.expires_at) for item in found(server_kv)]
        assert there == contents(sqlite), seed
        values = [item and item.value for item in server_kv.get_many(KEYS)]
        assert [item and item.value for item in server_kv.read_many(KEYS)] == values


def test_concurrent_changes_of_one_key_lose_nothing(server_kv: KeyValue) -> None:
    def add(items: list[Item | None]) -> tuple[list[Edit], None]:
        return [Put(b"%d" % (int(items[0].value if items[0] else b"0") + 1))], None

    jobs: list[Any] = [gevent.spawn(server_kv.update, [b"n"], add) for _ in range(60)]
    jobs += [gevent.spawn(server_kv.store, b"first", b"%d" % number, mode=Mode.ADD) for number in range(20)]
    gevent.joinall(jobs)
    assert [job.exception for job in jobs if job.exception] == []
    assert [job.get() for job in jobs[60:]].count(Outcome.STORED) == 1
    item = server_kv.get_many([b"n"])[0]
    assert item is not None and item.value == b"60"


def test_several_keys_of_one_redis_change_together(redis_nodes: list[Running]) -> None:
    with open_redis(redis_nodes[0]) as kv:

        def add(items: list[Item | None]) -> tuple[list[Edit], None]:
            return [Put(b"%d" % (int(item.value if item else b"0") + 1)) for item in items], None

        source = random.Random(5)
        jobs = [gevent.spawn(kv.update, source.sample(KEYS, 4), add) for _ in range(30)]
        gevent.joinall(jobs)
        assert [job.exception for job in jobs if job.exception] == []
        assert [item and item.value for item in kv.get_many(KEYS)] == [b"30"] * 4
        assert not kv.put_many_if_absent([(b"new", Put(b"1")), (KEYS[0], Put(b"1"))])
        assert kv.get_many([b"new"]) == [None]


def test_several_keys_on_several_servers_do_not(redis_nodes: list[Running]) -> None:
    keys = [b"%x" % (number * 2654435761) for number in range(60)]  # far apart: short ones may share a server
    with open_redis(*redis_nodes) as kv, pytest.raises(ClientError, match="on different servers"):
        kv.update(keys, lambda items: ([None] * len(items), None))


def test_walking_redis_meets_every_key_once_it_is_there(redis_nodes: list[Running]) -> None:
    keys = {b"%d" % number for number in range(500)}
    with open_redis(*redis_nodes) as kv:
        kv.put_many([(key, Put(b"x")) for key in keys])
        found: set[bytes] = set()
        cursor, page = kv.scan(0, 10)
        found.update(page)
        while cursor:
            cursor, page = kv.scan(cursor, 10)
            found.update(page)
        assert found == keys
        assert kv.count() == 500
        kv.clear()
        assert (kv.count(), kv.scan(0, 10)[1]) == (0, [])


def test_versions_of_memcached_are_compared(memcached_nodes: list[Running]) -> None:
    with open_memcache(*memcached_nodes) as kv:
        assert kv.store(b"a", b"1", mode=Mode.CAS, version=7) is Outcome.NOT_FOUND
        version = kv.update([b"a"], lambda items: ([Put(b"1", 5)], None))[1][0]
        item = kv.get_many([b"a"])[0]
        assert item is not None and (item.flags, item.version) == (5, version)
        assert kv.store(b"a", b"2", mode=Mode.CAS, version=version + 1) is Outcome.EXISTS
        assert kv.store(b"a", b"2", mode=Mode.CAS, version=0) is Outcome.EXISTS
        assert kv.store(b"a", b"2", mode=Mode.CAS, version=version) is Outcome.STORED
        assert kv.store(b"a", b"3", mode=Mode.CAS, version=version) is Outcome.EXISTS


def test_numbers_of_memcached_do_not_go_below_zero_nor_above_64_bits(server_kv: KeyValue) -> None:
    server_kv.put_many([(b"low", Put(b"17")), (b"high", Put(b"18446744073709551615"))])
    assert [server_kv.incr_unsigned(b"low", -1), server_kv.incr_unsigned(b"low", -100)] == [16, 0]
    assert [server_kv.incr_unsigned(b"high", 2), server_kv.incr_unsigned(b"absent", 2)] == [1, None]


def test_memcached_without_versions_is_told(own: Callable[[Running], Running]) -> None:
    with open_memcache(own(memcached("-C"))) as kv:
        kv.put_many([(b"a", Put(b"1"))])
        with pytest.raises(BackendError, match="keeps no versions"):
            kv.append(b"a", b"2", create=True)
