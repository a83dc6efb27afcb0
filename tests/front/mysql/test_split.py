"""Keys over many databases and tables: by hash, as the placement says, and by the date in a number."""

from __future__ import annotations

import json
import subprocess
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
import redis

from hyper_proxy.config.model import Server
from hyper_proxy.hashing import build
from tests.front.mysql.conftest import PATIENT, Front, StartFront
from tests.kit.fleet import COMMAND
from tests.kit.mariadb import MariaDb

COLUMNS = "id BIGINT AUTO_INCREMENT PRIMARY KEY, k VARBINARY(99) UNIQUE, v BLOB"
HASHED = '{ name = "app_{db:02}.kv_{table}", databases = 4, tables = 3, key = "k", value = "v", id = "id" }'
WEIBO_EPOCH, WEIBO_SHIFT = 515483463, 22
DATED = (
    '{ name = "app_{db}.kv_{yy}{mm}", databases = 4, key = "id", value = "content", id = "id",'
    f" date = {{ shift = {WEIBO_SHIFT}, epoch = {WEIBO_EPOCH}, utc_offset_h = 8 }} }}"
)
WEIBO = f'{PATIENT}\n  hash = "weibo_crc32abs"\n  distribution = "weibo_secmod"'


@pytest.fixture
def pair(mariadb: MariaDb, own: Callable[[MariaDb], MariaDb]) -> Iterator[list[MariaDb]]:
    """Two servers whose further databases go with the test."""
    servers = [mariadb, own(MariaDb())]
    yield servers
    for name in databases(mariadb):
        mariadb.sql(f"DROP DATABASE {name}")


def databases(server: MariaDb) -> list[str]:
    return [row[0] for row in server.sql("SHOW DATABASES LIKE 'app\\\\_%'")]


def make(server: MariaDb, table: str, columns: str = COLUMNS) -> None:
    server.sql(f"CREATE DATABASE IF NOT EXISTS {table.partition('.')[0]}")
    server.sql(f"CREATE TABLE {table} ({columns})")


def rows(server: MariaDb, table: str) -> list[tuple[Any, ...]]:
    return server.sql(f"SELECT * FROM {table}")


@pytest.fixture
def hashed(start_front: StartFront, pair: list[MariaDb]) -> Front:
    """Databases 0 and 1 are at the first server, 2 and 3 at the second."""
    for db in range(4):
        for number in range(3):
            make(pair[db // 2], f"app_{db:02}.kv_{number}")
    return start_front(pair, table=HASHED)


def test_every_key_is_in_the_table_that_hash_and_distribution_say(hashed: Front, pair: list[MariaDb]) -> None:
    client, other = hashed.redis(), hashed.memcache()
    keys = [f"{zlib.crc32(b'%d' % number):08x}" for number in range(200)]
    client.mset({key: f"value of {key}" for key in keys})
    placement = build("", "ketama", "", [Server(name=str(slot)) for slot in range(12)])
    home: dict[int, list[bytes]] = {slot: [] for slot in range(12)}
    for key in keys:
        home[placement.locate(key.encode(), 0, len(key))].append(key.encode())
    for slot, expected in home.items():
        db, number = divmod(slot, 3)
        assert sorted(row[1] for row in rows(pair[db // 2], f"app_{db:02}.kv_{number}")) == sorted(expected)
    assert all(home.values()), "no table is without keys"
    assert client.mget([*keys, "none"]) == [f"value of {key}".encode() for key in keys] + [None]
    assert other.get_many(keys[:50]) == {key: f"value of {key}".encode() for key in keys[:50]}
    assert client.dbsize() == 200
    assert sorted(client.scan_iter(count=7)) == sorted(key.encode() for key in keys)
    assert sorted(client.keys("*")) == sorted(key.encode() for key in keys)
    assert client.append(keys[1], "!") == len(f"value of {keys[1]}!")
    assert client.incr("n") == 1
    assert client.delete(*keys) == 200
    assert client.mget("n", keys[1]) == [b"1", None]
    other.flush_all()
    assert client.dbsize() == 0


def test_a_read_of_many_keys_is_one_statement_a_table(hashed: Front, pair: list[MariaDb]) -> None:
    client = hashed.redis()
    keys = [f"{zlib.crc32(b'%d' % number):08x}" for number in range(300)]
    client.mget(keys)  # connections are made, tables are looked at

    def statements() -> int:
        return sum(int(server.sql("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1]) for server in pair)

    before = statements()
    client.mget(keys)
    assert statements() - before <= 12 + 3 * 12, "one a table, and three for a table that a connection does not know"
    for _ in range(20):
        client.mget(keys)
    before = statements()
    client.mget(keys)
    assert statements() - before <= 20


def test_what_must_change_together_must_be_in_one_table(hashed: Front) -> None:
    client = hashed.redis()
    with pytest.raises(redis.ResponseError, match="on different servers or tables, and must change together"):
        client.msetnx({f"key{number}": 1 for number in range(50)})
    assert client.dbsize() == 0


def test_a_table_that_is_missing_fails_its_keys_alone(hashed: Front, pair: list[MariaDb]) -> None:
    client = hashed.redis()
    keys = [f"key{number}" for number in range(60)]
    pair[0].sql("DROP TABLE app_00.kv_1")
    failed = []
    for key in keys:
        try:
            client.set(key, 1)
        except redis.ResponseError as error:
            assert "instance 'user'" in str(error)
            assert "table app_00.kv_1: there is none of this name" in str(error)
            failed.append(key)
    placement = build("", "ketama", "", [Server(name=str(slot)) for slot in range(12)])
    assert failed == [key for key in keys if placement.locate(key.encode(), 0, len(key)) == 1]


def test_explain_names_the_table(hashed: Front) -> None:
    words = [*COMMAND, "explain", "-c", str(hashed.fleet.file), "user", "GET", "key5"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout
    slot = build("", "ketama", "", [Server(name=str(slot)) for slot in range(12)]).locate(b"key5", 0, 4)
    server = hashed.servers[slot // 6].address
    assert f"gives shard {slot}, {server} ({hashed.name(slot // 6)}), table app_{slot // 3:02}.kv_{slot % 3}" in said


# ---- by date


def weibo_id(moment: datetime, sequence: int) -> int:
    return ((int(moment.timestamp()) - WEIBO_EPOCH) << WEIBO_SHIFT) + sequence


def weibo_db(key: int) -> int:
    """kv-proxies 2.7: one table a database, so slots are the 4 databases."""
    crc = zlib.crc32(str(key).encode())
    return abs(crc - (1 << 32) if crc >> 31 else crc) // 4 % 4


BEIJING = timedelta(hours=8)
MONTHS = ("2311", "2312", "2401")


@pytest.fixture
def dated(start_front: StartFront, pair: list[MariaDb]) -> Front:
    """A table a month and database."""
    for db in range(4):
        for month in MONTHS:
            make(pair[db // 2], f"app_{db}.kv_{month}", "id BIGINT UNSIGNED PRIMARY KEY, content BLOB")
    return start_front(pair, table=DATED, settings=WEIBO)


def test_a_number_says_its_table(dated: Front, pair: list[MariaDb]) -> None:
    client = dated.redis()
    new_year = datetime(2023, 12, 31, 16, tzinfo=UTC)  # in Beijing
    later = (timedelta(days=-40), timedelta(seconds=-1), timedelta(), timedelta(days=30))
    ids = [weibo_id(new_year + time, sequence) for time in later for sequence in range(10)]
    keys = [str(number) for number in ids]
    client.mset({key: f"text of {key}" for key in keys})
    found = {}
    for db in range(4):
        for month in MONTHS:
            found[db, month] = sorted(row[0] for row in rows(pair[db // 2], f"app_{db}.kv_{month}"))
    expected: dict[tuple[int, str], list[int]] = {(db, month): [] for db in range(4) for month in MONTHS}
    for number in ids:
        moment = datetime.fromtimestamp((number >> WEIBO_SHIFT) + WEIBO_EPOCH, UTC) + BEIJING
        expected[weibo_db(number), moment.strftime("%y%m")].append(number)
    assert found == expected
    assert client.mget(keys) == [f"text of {key}".encode() for key in keys]
    assert client.dbsize() == 40
    cursor, walked = 0, []
    while True:
        cursor, page = client.scan(cursor, count=7)
        walked += page
        if cursor == 0:
            break
    assert walked == [key.encode() for key in keys], "in the order of time, each once"
    assert client.delete(*keys) == 40
    assert client.dbsize() == 0


@pytest.fixture
def by_year(start_front: StartFront, own: Callable[[MariaDb], MariaDb]) -> Front:
    """2023 and before are at a server with a writer, of which it is no replica: what is read shows who was asked. Later
    years are at two others. All have all tables."""
    servers = [own(MariaDb()) for _ in range(4)]
    for server in servers:
        for db, month in product(range(4), MONTHS):
            make(server, f"app_{db}.kv_{month}", "id BIGINT UNSIGNED PRIMARY KEY, content BLOB")
    old, old_writer = servers[2:]
    years = (
        f'years = {{ "2000-2023" = {{ servers = ["{old.address} old"], writers = ["{old_writer.address} oldw"] }} }}'
    )
    front = start_front(servers[:2], table=DATED, settings=f"{WEIBO}\n  {years}")
    front.servers = servers
    return front


def test_years_are_at_servers_of_their_own(by_year: Front) -> None:
    client = by_year.redis()
    new_year = datetime(2023, 12, 31, 16, tzinfo=UTC)  # in Beijing
    before = [weibo_id(new_year - timedelta(seconds=1), number) for number in range(20)]
    after = [weibo_id(new_year, number) for number in range(20)]
    client.mset({str(number): f"text of {number}" for number in (*before, *after)})
    kept = [
        {(db, month): {row[0] for row in rows(server, f"app_{db}.kv_{month}")} for db in range(4) for month in MONTHS}
        for server in by_year.servers
    ]
    later: list[set[int]] = [{number for number in after if weibo_db(number) // 2 == side} for side in range(2)]
    for held, expected in zip(kept, [*later, set(), set(before)], strict=True):
        assert set().union(*held.values()) == expected
    assert all(later), "both servers have some"
    old, new = ([str(number) for number in numbers] for numbers in (before, after))
    assert client.mget(old) == [None] * 20, "their reader has none"
    for number in before:
        by_year.servers[2].sql(f"INSERT INTO app_{weibo_db(number)}.kv_2312 VALUES (%s, 'as it reads')", (number,))
    assert client.mget([*old, new[0]]) == [b"as it reads"] * 20 + [f"text of {after[0]}".encode()]
    assert client.dbsize() == 40
    walked = [int(key) for key in client.scan_iter(count=7)]
    assert walked == [*before, *after], "in the order of time, each once"
    assert client.delete(*old, *new) == 40
    assert client.dbsize() == 20, "what only their reader has"

    words = [*COMMAND, "explain", "-c", str(by_year.fleet.file), "--json", "user", "GET"]
    for number, at in ((before[0], 2), (after[0], weibo_db(after[0]) // 2)):
        said = json.loads(subprocess.run([*words, str(number)], capture_output=True, check=True, timeout=30).stdout)
        assert said["keys"][0]["levels"][0]["node"] == by_year.servers[at].address
    assert {"a", "b", "old", "oldw"} == set(by_year.fleet.stats()["instances"]["user"]["nodes"])
    order = [*COMMAND, "ctl", "-c", str(by_year.fleet.file), "node", "drain", "user", "old"]
    subprocess.run(order, check=True, capture_output=True, timeout=30)
    with pytest.raises(redis.ResponseError, match=r"old .*: drained by an operator"):
        client.get(old[0])
    assert client.get(new[0]) is None


def test_numbers_without_a_table_are_told(dated: Front) -> None:
    client = dated.redis()
    for key in ("abc", "", "-1", "07", "9" * 25):
        with pytest.raises(redis.ResponseError, match="chosen by the date in the key, which must be a number"):
            client.get(key)
    with pytest.raises(redis.ResponseError, match="chosen by the date in the key, and this one has none"):
        client.get("5")
    number = weibo_id(datetime(2031, 5, 5, tzinfo=UTC), 1)
    with pytest.raises(redis.ResponseError, match=rf"table app_{weibo_db(number)}.kv_3105: there is none of this name"):
        client.set(str(number), "x")
    assert client.ping()


def test_explain_names_the_table_of_a_date(dated: Front) -> None:
    number = weibo_id(datetime(2023, 12, 5, tzinfo=UTC), 1)
    words = [*COMMAND, "explain", "-c", str(dated.fleet.file), "--json", "user", "GET", str(number)]
    said = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout)
    place = said["keys"][0]["levels"][0]
    assert (place["route"], place["node"]) == (
        f"table app_{weibo_db(number)}.kv_2312", dated.servers[weibo_db(number) // 2].address
    )  # fmt: skip


def test_tables_can_change_by_a_reload(dated: Front, pair: list[MariaDb]) -> None:
    make(pair[0], "app_one.kv")
    make(pair[1], "app_one.kv")
    client = dated.redis()
    number = weibo_id(datetime(2023, 12, 5, tzinfo=UTC), 1)
    client.set(str(number), "x")
    dated.table = '{ name = "app_one.kv", key = "k", value = "v" }'
    dated.fleet.write(dated.text())
    assert dated.fleet.reload().accepted
    assert dated.redis().get(str(number)) is None
    dated.table = DATED
    dated.fleet.write(dated.text())
    assert dated.fleet.reload().accepted
    assert dated.redis().get(str(number)) == b"x"
