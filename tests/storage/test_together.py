"""Reads of one table at the same moment are one statement, and what is wrong with one key is nobody else's fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gevent
import pytest

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.config.model import Table
from hyper_proxy.stats.classes import READ
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.storage.mysql import MysqlStorage
from hyper_proxy.storage.together import FEW, MOST
from tests.kit.key_values import open_mysql
from tests.kit.mariadb import MariaDb

COLUMNS = "k VARCHAR(200) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, v VARBINARY(200)"
LONE = "ä".encode()[:1]  # is no text
STRANGE = "😀".encode()  # is no text of this column

Found = list[Item | None]


@pytest.fixture
def kv(mariadb: MariaDb) -> Iterator[MysqlStorage]:
    mariadb.make_table(f"CREATE TABLE {{name}} ({COLUMNS})")
    with open_mysql(mariadb, table=Table("kv", "k", "v")) as storage:
        storage.put_many([(b"%d" % number, Put(b"v%d" % number)) for number in range(300)])
        yield storage


def statements(kv: MysqlStorage, ask: Callable[[], object]) -> int:
    """How many reads that took."""
    (node,) = kv.nodes
    before = node.pool.counts()[READ]
    ask()
    return node.pool.counts()[READ] - before


def all_at_once(kv: MysqlStorage, requests: list[list[bytes]]) -> list[Found | BackendError | ClientError]:
    def one(keys: list[bytes]) -> Found | BackendError | ClientError:
        try:
            return kv.get_many(keys)
        except (BackendError, ClientError) as error:
            return error

    return [greenlet.get() for greenlet in [gevent.spawn(one, keys) for keys in requests]]


def values(found: Found | BackendError | ClientError) -> list[bytes | None]:
    assert isinstance(found, list), found
    return [item.value if item else None for item in found]


def test_one_statement_for_all_who_ask_in_one_turn(kv: MysqlStorage) -> None:
    requests = [[b"1"], [b"2", b"none"], [b"1", b"3"], [b"3", b"3"]]
    told: list[Found | BackendError | ClientError] = []
    assert statements(kv, lambda: told.extend(all_at_once(kv, requests))) == 1
    assert [values(one) for one in told] == [[b"v1"], [b"v2", None], [b"v1", b"v3"], [b"v3", b"v3"]]
    assert statements(kv, lambda: kv.get_many([b"1"])) == 1, "a statement that has ended is nobody's answer"


def test_who_comes_later_waits_for_no_statement_under_way(kv: MysqlStorage, mariadb: MariaDb) -> None:
    with mariadb.connect() as other:
        other.cursor().execute("LOCK TABLES kv WRITE")
        first = gevent.spawn(kv.get_many, [b"1"])
        (node,) = kv.nodes
        while not node.pool.lent:
            gevent.idle()
        second = gevent.spawn(kv.get_many, [b"2"])
        while len(node.pool.lent) < 2:
            gevent.idle()
        other.cursor().execute("UNLOCK TABLES")
    assert (values(first.get()), values(second.get())) == ([b"v1"], [b"v2"])


def test_statements_do_not_grow_without_end(kv: MysqlStorage) -> None:
    many = [b"%d" % number for number in range(FEW + 1)]
    assert statements(kv, lambda: all_at_once(kv, [many, many])) == 2
    ones = [[b"%d" % number] for number in range(2 * MOST)]
    assert statements(kv, lambda: all_at_once(kv, ones)) == 2


@pytest.mark.parametrize("others", [1, 2, 9])  # a server has an error of its own for each
@pytest.mark.parametrize("wrong", [LONE, STRANGE])
def test_what_is_wrong_with_a_key_is_not_the_others_fault(kv: MysqlStorage, wrong: bytes, others: int) -> None:
    for place in range(others + 1):
        requests = [[b"%d" % number] for number in range(others)]
        requests.insert(place, [wrong])
        told = all_at_once(kv, requests)
        error = told.pop(place)
        assert isinstance(error, ClientError | BackendError)
        assert "value" in str(error) or "UTF-8" in str(error) or "collation" in str(error).lower()
        assert [values(one) for one in told] == [[b"v%d" % number] for number in range(others)]


def test_a_key_that_a_column_can_not_have_costs_no_connection(kv: MysqlStorage) -> None:
    kv.get_many([b"1"])
    (node,) = kv.nodes
    before = node.counts.connects
    for _ in range(3):
        with pytest.raises(BackendError, match="collations"):
            kv.get_many([STRANGE])
        assert values(kv.get_many([b"1"])) == [b"v1"]
    assert node.counts.connects == before


def test_a_server_that_is_away_is_told_to_all(kv: MysqlStorage, mariadb: MariaDb) -> None:
    kv.get_many([b"1"])
    (node,) = kv.nodes
    node.out = "maintenance"
    told = all_at_once(kv, [[b"1"], [b"2"], [b"3"]])
    assert [isinstance(one, BackendError) and one.kind for one in told] == ["maintenance"] * 3
