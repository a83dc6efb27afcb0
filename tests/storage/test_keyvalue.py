"""What every key-value storage does alike, whatever holds the values."""

from __future__ import annotations

import random
import time
from typing import Any

import gevent
import pytest

from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.keyvalue import EXPIRED, REMOVE, Edit, Expire, Item, KeyValue, Mode, Outcome, Put

HOSTILE = (
    b"", b"'", b'"', b"`", b"\\", b"\\'", b"'; DROP TABLE kv; -- ", b"' OR '1'='1", b"%s", b"%(a)s", b"%%", b"{keys}",
    b"\x00", b"a\x00b", b"\xff\xfe", bytes(range(256)), "é".encode(), "😀".encode(), b"\xf0\x9f\x98", b"\r\n", b"\x1a",
    b"a", b"A", b"a ", b"a  ", b" a", b"a\t", "á".encode(), "ß".encode(), b"ss", b"_binary'a'", b"X'41'", b"0x41", b"1",
    b"1.0", b"01", b"NULL", b"x" * 700,
)  # fmt: skip


def value_of(kv: KeyValue, key: bytes) -> bytes | None:
    item = kv.get_many([key])[0]
    return item.value if item else None


def version_of(kv: KeyValue, key: bytes) -> int:
    item = kv.get_many([key])[0]
    assert item is not None
    return item.version


# ---- values


def test_hostile_keys_and_values_come_back_as_they_were(kv: KeyValue) -> None:
    for number, key in enumerate(HOSTILE):
        kv.store(key, HOSTILE[-1 - number], number)
    kv.put_many([(b"many:" + key, Put(key)) for key in HOSTILE])
    items = kv.get_many(HOSTILE)
    assert [(item.value, item.flags) if item else None for item in items] == [
        (HOSTILE[-1 - number], number) for number in range(len(HOSTILE))
    ]
    assert [value_of(kv, b"many:" + key) for key in HOSTILE] == list(HOSTILE)
    assert kv.count() == 2 * len(HOSTILE)
    for key in HOSTILE:
        assert kv.append(key, b"'\x00", create=False) == len(HOSTILE[-1 - HOSTILE.index(key)]) + 2
    assert kv.delete_many(HOSTILE) == len(HOSTILE)
    assert kv.get_many(HOSTILE) == [None] * len(HOSTILE)


def test_a_large_value_comes_back_whole(kv: KeyValue) -> None:
    value = random.Random(3).randbytes(1024 * 1024)
    kv.put_many([(b"a", Put(value)), (b"b", Put(value[::-1]))])
    assert (value_of(kv, b"a"), value_of(kv, b"b")) == (value, value[::-1])
    assert kv.append(b"a", b"x", create=False) == len(value) + 1
    assert value_of(kv, b"a") == value + b"x"


def test_many_keys_at_once(kv: KeyValue) -> None:
    keys = [b"%d" % number for number in range(1300)]
    kv.put_many([(key, Put(key * 3)) for key in keys])
    assert [item.value if item else None for item in kv.get_many(keys)] == [key * 3 for key in keys]
    assert not kv.put_many_if_absent([(key, Put(b"")) for key in [b"new", *keys]])
    assert kv.get_many([b"new"]) == [None]
    assert all(kv.expire_many(keys, time.time() + 100))
    assert all(item and item.expires_at for item in kv.get_many(keys))
    assert kv.delete_many([*keys, *keys]) == len(keys)
    assert kv.count() == 0


@pytest.mark.parametrize(("mode", "present", "absent"), [
    (Mode.SET, Outcome.STORED, Outcome.STORED),
    (Mode.ADD, Outcome.NOT_STORED, Outcome.STORED),
    (Mode.REPLACE, Outcome.STORED, Outcome.NOT_STORED),
])  # fmt: skip
def test_a_mode_decides_on_presence(kv: KeyValue, mode: Mode, present: Outcome, absent: Outcome) -> None:
    kv.store(b"a", b"old")
    assert kv.store(b"a", b"new", mode=mode) is present
    assert kv.store(b"b", b"new", mode=mode) is absent
    values = [value_of(kv, b"a"), value_of(kv, b"b")]
    assert values == [b"new" if outcome is Outcome.STORED else other
                      for outcome, other in ((present, b"old"), (absent, None))]


def test_cas_compares_the_version(kv: KeyValue) -> None:
    assert kv.store(b"a", b"1", mode=Mode.CAS, version=1) is Outcome.NOT_FOUND
    kv.store(b"a", b"1")
    version = version_of(kv, b"a")
    assert kv.store(b"a", b"2", mode=Mode.CAS, version=version + 1) is Outcome.EXISTS
    assert kv.store(b"a", b"2", mode=Mode.CAS, version=version) is Outcome.STORED
    assert kv.store(b"a", b"3", mode=Mode.CAS, version=version) is Outcome.EXISTS


def test_versions_grow_with_every_write_also_of_keys_that_went(kv: KeyValue) -> None:
    versions: list[int] = []
    for _ in range(3):
        versions += kv.update([b"a"], lambda items: ([Put(b"1")], None))[1]
        kv.store(b"a", b"2")
        versions.append(version_of(kv, b"a"))
        kv.incr_signed(b"a", 1)
        versions.append(version_of(kv, b"a"))
        kv.delete_many([b"a"])
    kv.clear()
    versions += kv.update([b"a"], lambda items: ([Put(b"1")], None))[1]
    assert versions == sorted(set(versions))
    assert versions[-1] == version_of(kv, b"a"), "the version that was told is the one that is there"
    assert kv.update([b"a", b"b"], lambda items: ([Put(b"1"), None], None))[1][1] == 0


def test_deleting_counts_each_key_once(kv: KeyValue) -> None:
    kv.put_many([(b"a", Put(b"1")), (b"b", Put(b"2"))])
    assert kv.delete_many([b"a", b"a", b"x", b"b"]) == 2
    assert kv.count() == 0


def test_of_a_key_that_is_named_twice_the_last_value_stays(kv: KeyValue) -> None:
    kv.put_many([(b"a", Put(b"1", 1)), (b"b", Put(b"2")), (b"a", Put(b"3", 3))])
    item = kv.get_many([b"a"])[0]
    assert item is not None
    assert (item.value, item.flags) == (b"3", 3)


# ---- expiry


def test_an_expired_item_is_invisible_everywhere_at_once(kv: KeyValue) -> None:
    kv.put_many([(b"a", Put(b"1", 0, EXPIRED)), (b"b", Put(b"2"))])
    assert kv.get_many([b"a"]) == [None]
    assert (kv.count(), kv.scan(0, 10)) == (1, (0, [b"b"]))
    assert kv.store(b"a", b"1", mode=Mode.REPLACE) is Outcome.NOT_STORED
    assert kv.delete_many([b"a"]) == 0
    assert kv.put_many_if_absent([(b"a", Put(b"3"))])
    assert value_of(kv, b"a") == b"3"


@pytest.mark.parametrize("expires_at", [None, 1e10 + 0.001, 4_000_000_000.123, 0.0, -5.0, EXPIRED])
def test_a_time_of_expiry_is_kept_to_the_millisecond(kv: KeyValue, expires_at: float | None) -> None:
    kv.store(b"a", b"1")
    kv.expire_many([b"a"], expires_at)
    item = kv.get_many([b"a"])[0]
    if expires_at is not None and expires_at < time.time():
        assert item is None
    else:
        assert item is not None
        assert item.expires_at == expires_at


# ---- all or nothing


def test_what_a_change_raises_undoes_all_and_reaches_the_caller(kv: KeyValue) -> None:
    kv.store(b"a", b"1")

    def change(items: list[Item | None]) -> tuple[list[Put], None]:
        raise ClientError("no")

    with pytest.raises(ClientError, match="no"):
        kv.update([b"a"], change)
    assert kv.store(b"a", b"2") is Outcome.STORED, "the lock is free again"


EDITS: dict[str, list[Edit]] = {
    "put": [Put(b"1"), Put(b"2", 5)], "put, remove": [Put(b"1"), REMOVE], "remove, put": [REMOVE, Put(b"3")],
    "put, expire": [Put(b"1", 2), Expire(5e9)], "expire, put": [Expire(5e9), Put(b"2")],
    "expire, remove": [Expire(5e9), REMOVE], "remove, expire": [REMOVE, Expire(5e9)], "nothing": [None, None],
}  # fmt: skip
AFTER: dict[str, tuple[bytes, int, float | None] | None] = {
    "put": (b"2", 5, None), "put, remove": None, "remove, put": (b"3", 0, None), "put, expire": (b"1", 2, 5e9),
    "expire, put": (b"2", 0, None), "expire, remove": None, "remove, expire": None,
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("present", [True, False])
def test_several_edits_of_a_key_apply_in_order(kv: KeyValue, name: str, present: bool) -> None:
    if present:
        kv.store(b"a", b"old", 9)
    kv.update([b"a", b"b", b"a"], lambda items: ([EDITS[name][0], Put(b"other"), EDITS[name][1]], None))
    item = kv.get_many([b"a"])[0]
    expected = AFTER.get(name, (b"old", 9, None) if present else None)
    assert (item and (item.value, item.flags, item.expires_at)) == expected
    assert value_of(kv, b"b") == b"other"


def test_concurrent_changes_of_one_key_lose_nothing(kv: KeyValue) -> None:
    jobs: list[Any] = [gevent.spawn(kv.incr_signed, b"n", 1) for _ in range(60)]
    jobs += [gevent.spawn(kv.store, b"first", b"%d" % number, mode=Mode.ADD) for number in range(20)]
    gevent.joinall(jobs)
    assert sorted(job.get() for job in jobs[:60]) == list(range(1, 61))
    assert [job.get() for job in jobs[60:]].count(Outcome.STORED) == 1
    assert value_of(kv, b"n") == b"60"


def test_who_changes_the_same_keys_in_other_orders_gets_through(kv: KeyValue) -> None:
    keys = [b"a", b"b", b"c", b"d"]

    def add(items: list[Item | None]) -> tuple[list[Put], None]:
        return [Put(b"%d" % (int(item.value if item else b"0") + 1)) for item in items], None

    source = random.Random(5)
    jobs = [gevent.spawn(kv.update, source.sample(keys, 4), add) for _ in range(30)]
    gevent.joinall(jobs)
    assert [job.exception for job in jobs if job.exception] == []
    assert [value_of(kv, key) for key in keys] == [b"30"] * 4


# ---- walking


def test_a_scan_sees_every_key_that_stays_though_others_change(kv: KeyValue) -> None:
    kv.put_many([(b"%d" % number, Put(b"x")) for number in range(100)])
    found: list[bytes] = []
    cursor, first = 0, True
    while first or cursor:
        first = False
        cursor, keys = kv.scan(cursor, 7)
        found += keys
        kv.delete_many([b"%d" % (len(found) % 10)])
        if len(found) == 49:
            kv.store(b"99", b"rewritten")
    assert {b"%d" % number for number in range(10, 100)} <= set(found)


def test_clearing_empties_it(kv: KeyValue) -> None:
    kv.put_many([(b"%d" % number, Put(b"x")) for number in range(2500)])
    kv.clear()
    assert (kv.count(), kv.scan(0, 10)) == (0, (0, []))
