"""Tables of many shapes: what fits is kept byte for byte, what does not is refused by name, other rows stay."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.config.model import Table, Timeout
from hyper_proxy.storage.keyvalue import EXPIRED, KeyValue, Mode, Outcome, Put
from tests.kit.key_values import open_mysql
from tests.kit.mariadb import MariaDb

BARE = Table("kv", "k", "v")

Open = Callable[..., KeyValue]


@pytest.fixture
def make(mariadb: MariaDb) -> Iterator[Open]:
    """`make("k VARCHAR(9) ...", table, ...)`: the table of these columns, as a storage."""
    with ExitStack() as stack:

        def one(columns: str, table: Table = BARE, **settings: object) -> KeyValue:
            mariadb.make_table(f"CREATE TABLE {{name}} ({columns})")
            return stack.enter_context(open_mysql(mariadb, table=table, **settings))

        yield one


def values(kv: KeyValue, *keys: bytes) -> list[bytes | None]:
    return [item.value if item else None for item in kv.get_many(keys)]


def refusal(ask: Callable[[], object]) -> BackendError:
    with pytest.raises(BackendError) as caught:
        ask()
    assert "instance 'user'" in str(caught.value)
    assert caught.value.node in str(caught.value)
    return caught.value


# ---- types


def test_text_is_kept_in_any_character_set(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARCHAR(50) COLLATE utf8mb4_nopad_bin PRIMARY KEY, v TEXT CHARACTER SET utf8mb4 NOT NULL")
    keys = [text.encode() for text in ("a", "A", "á", "a ", "a  ", "😀", "'", "\\", "\x00", "ß", "ss", "")]
    kv.put_many([(key, Put(key + b"!")) for key in keys])
    assert values(kv, *keys) == [key + b"!" for key in keys]
    assert {row[0] for row in mariadb.sql("SELECT k FROM kv")} == {key.decode() for key in keys}
    kv = make("k VARCHAR(50) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, v TEXT CHARACTER SET latin1 NOT NULL")
    kv.put_many([("ä".encode(), Put("ö".encode())), (b"a", Put(b"o"))])
    assert values(kv, "ä".encode(), b"a", b"b") == ["ö".encode(), b"o", None]
    assert refusal(lambda: kv.get_many(["😀".encode()])).kind == "value"
    assert mariadb.sql("SELECT HEX(v) FROM kv ORDER BY v") == [("6F",), ("F6",)]
    error = refusal(lambda: kv.store(b"b", "😀".encode()))
    assert error.kind == "value"
    assert "'v'" in str(error) or "`v`" in str(error)
    assert values(kv, b"b") == [None]


def test_what_is_no_text_is_refused_by_a_text_column(make: Open) -> None:
    kv = make("k VARCHAR(50) COLLATE utf8mb4_bin PRIMARY KEY, v TEXT NOT NULL COLLATE utf8mb4_general_ci")
    kv.store(b"a", "ÿ".encode())
    with pytest.raises(ClientError, match=r"column 'v' \(text, utf8mb4_general_ci\) holds text, and this is not UTF-8"):
        kv.store(b"a", b"\xff")
    with pytest.raises(ClientError, match=r"column 'k' .* holds text"):
        kv.get_many([b"\xff"])
    with pytest.raises(ClientError, match=r"column 'k' .* does not keep spaces at the end"):
        kv.store(b"a ", b"1")
    assert kv.append(b"a", b" ", create=False) == 3
    assert values(kv, b"a", b"A") == ["ÿ ".encode(), None]


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_swedish_ci"])
def test_a_column_that_takes_two_keys_for_one_is_refused(make: Open, mariadb: MariaDb, collation: str) -> None:
    charset = collation.partition("_")[0]
    kv = make(f"k VARCHAR(50) CHARACTER SET {charset} COLLATE {collation} PRIMARY KEY, v BLOB NOT NULL")
    for ask in (lambda: kv.get_many([b"a"]), lambda: kv.store(b"a", b"1"), lambda: kv.delete_many([b"a"])):
        error = refusal(ask)
        assert error.kind == "schema"
        assert f"table kv: column 'k' (varchar(50), {collation}) takes different keys for the same" in str(error)
    assert mariadb.sql("SELECT * FROM kv") == []


def test_integer_keys_are_numbers_and_nothing_else(make: Open, mariadb: MariaDb) -> None:
    kv = make("k BIGINT UNSIGNED PRIMARY KEY, v BLOB NOT NULL", Table("kv", "k", "v", id="k"))
    most = b"18446744073709551615"
    kv.put_many([(b"0", Put(b"zero")), (b"7", Put(b"seven")), (most, Put(b"most"))])
    assert values(kv, b"7", most, b"0", b"8") == [b"seven", b"most", b"zero", None]
    assert mariadb.sql("SELECT k FROM kv ORDER BY k") == [(0,), (7,), (int(most),)]
    for key in (b"abc", b"", b"07", b"7 ", b"7.0", b"-1", b"7x", most + b"0", b"18446744073709551616", b"\xd9\xa7"):
        with pytest.raises(ClientError, match=r"column 'k' \(bigint\(20\) unsigned\) holds whole numbers from 0 to 18"):
            kv.get_many([key])
        with pytest.raises(ClientError):
            kv.delete_many([key])
    kv.delete_many([most])
    assert kv.scan(0, 5) == (0, [b"7"]), "rows are walked from 1"


def test_integer_values_count(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v INT NOT NULL")
    assert (kv.incr_signed(b"a", 5), kv.incr_signed(b"a", -7)) == (5, -2)
    assert mariadb.sql("SELECT v FROM kv") == [(-2,)]
    assert values(kv, b"a") == [b"-2"]
    for value in (b"x", b"1.5", b"2147483648", b"+1", b""):
        with pytest.raises(ClientError, match="holds whole numbers from -2147483648 to 2147483647"):
            kv.store(b"a", value)


def test_fixed_lengths(make: Open) -> None:
    kv = make("k BINARY(4) PRIMARY KEY, v CHAR(5) COLLATE utf8mb4_bin NOT NULL")
    kv.store(b"abcd", b"x")
    assert values(kv, b"abcd") == [b"x"]
    with pytest.raises(ClientError, match="holds exactly 4 bytes, not 3"):
        kv.get_many([b"abc"])
    with pytest.raises(ClientError, match="does not keep spaces at the end"):
        kv.store(b"abcd", b"x ")
    assert refusal(lambda: kv.store(b"abcd", b"123456")).kind == "value"
    assert values(kv, b"abcd") == [b"x"]


@pytest.mark.parametrize(("columns", "table", "says"), [
    ("k VARBINARY(9) PRIMARY KEY, v DECIMAL(9,2)", BARE, "column 'v' (decimal(9,2)) does not keep bytes as they are"),
    ("k VARBINARY(9) PRIMARY KEY, v DATETIME", BARE, "column 'v' (datetime)"),
    ("k DOUBLE PRIMARY KEY, v BLOB", BARE, "column 'k' (double)"),
    ("k VARBINARY(9), v BLOB", BARE, "there must be a unique index on the whole column 'k'"),
    ("k VARBINARY(9), v BLOB, KEY (k)", BARE, "there must be a unique index on the whole column 'k'"),
    ("k BLOB, v BLOB, UNIQUE (k(9))", BARE, "there must be a unique index on the whole column 'k'"),
    ("k VARBINARY(9), w INT, v BLOB, UNIQUE (k, w)", BARE, "there must be a unique index on the whole column 'k'"),
    ("k VARBINARY(9) PRIMARY KEY, body BLOB", BARE, "it has no column 'v'; there are body, k"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB", Table("nothing", "k", "v"), "table nothing: there is none of this name"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB", Table("kv", "k", "v", "mysql"), "table mysql.kv: there is none of this"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB, e FLOAT", Table("kv", "k", "v", expires="e"), "column 'e' (float) must be"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB, e DATETIME", Table("kv", "k", "v", expires="e"), "column 'e' (datetime)"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB, n INT", Table("kv", "k", "v", version="n"), "column 'n' (int(11)) must be"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB, f TEXT", Table("kv", "k", "v", flags="f"), "column 'f' (text"),
    ("k VARBINARY(9) PRIMARY KEY, v BLOB, i INT", Table("kv", "k", "v", id="i"), "a unique index on the column 'i'"),
])  # fmt: skip
def test_a_table_that_does_not_fit_is_refused_with_the_reason(
    make: Open, columns: str, table: Table, says: str
) -> None:
    kv = make(columns, table)
    for ask in (lambda: kv.get_many([b"1"]), lambda: kv.store(b"1", b"1"), kv.count, kv.clear):
        error = refusal(ask)
        assert (error.kind, says in str(error)) == ("schema", True), str(error)


@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY"])
def test_a_table_without_transactions_is_refused(make: Open, mariadb: MariaDb, engine: str) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v VARBINARY(9)")
    mariadb.sql(f"ALTER TABLE kv ENGINE = {engine}")
    error = refusal(lambda: kv.store(b"a", b"1"))
    assert (error.kind, f"its engine, {engine}, has no transactions; InnoDB has" in str(error)) == ("schema", True)
    assert mariadb.sql("SELECT * FROM kv") == []


def test_a_table_that_is_put_right_serves(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9), v BLOB")
    assert refusal(lambda: kv.store(b"a", b"1")).kind == "schema"
    mariadb.sql("ALTER TABLE kv ADD PRIMARY KEY (k)")
    kv.store(b"a", b"1")
    assert values(kv, b"a") == [b"1"]
    mariadb.sql("ALTER TABLE kv CHANGE v w BLOB")
    assert refusal(lambda: kv.get_many([b"a"])).kind == "schema"


def test_a_row_that_cannot_be_made_says_which_column_it_lacks(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v BLOB, owner INT NOT NULL")
    error = refusal(lambda: kv.store(b"a", b"1"))
    assert error.kind == "schema"
    assert "owner" in str(error)
    mariadb.sql("INSERT INTO kv VALUES ('a', 'old', 5)")
    assert kv.store(b"a", b"new", mode=Mode.REPLACE) is Outcome.STORED
    assert mariadb.sql("SELECT v, owner FROM kv") == [(b"new", 5)], "other columns keep what they have"


# ---- parts of an item


def test_parts_that_the_table_lacks_are_refused_and_nothing_is_written(make: Open) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v BLOB NOT NULL")
    kv.store(b"a", b"1")
    for ask, part in (
        (lambda: kv.store(b"a", b"2", flags=1), "flags"),
        (lambda: kv.store(b"a", b"2", expires_at=5e9), "a time of expiry"),
        (lambda: kv.put_many([(b"b", Put(b"1")), (b"a", Put(b"2", 1))]), "flags"),
        (lambda: kv.expire_many([b"a"], 5e9), "a time of expiry"),
        (lambda: kv.store(b"a", b"2", mode=Mode.CAS, version=0), "versions are not kept"),
        (lambda: kv.scan(0, 10), "no integer column to walk its keys by"),
    ):
        with pytest.raises(ClientError, match=part):
            ask()
    assert values(kv, b"a", b"b") == [b"1", None]
    assert kv.persist(b"a") is False
    assert kv.expire_many([b"a"], None)[0] is not None


def test_whole_seconds_are_rounded_up(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v BLOB, e INT UNSIGNED NOT NULL", Table("kv", "k", "v", expires="e"))
    kv.put_many([(b"a", Put(b"1", 0, 4e9 + 0.001)), (b"b", Put(b"1")), (b"c", Put(b"1", 0, EXPIRED))])
    assert mariadb.sql("SELECT e FROM kv ORDER BY k") == [(4_000_000_001,), (0,), (1,)]
    assert [item and item.expires_at for item in kv.get_many([b"a", b"b", b"c"])] == [4e9 + 1, None, None]
    assert kv.persist(b"a")
    assert mariadb.sql("SELECT e FROM kv WHERE k = 'a'") == [(0,)]


def test_a_decimal_keeps_milliseconds(make: Open) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v BLOB, e DECIMAL(16,3)", Table("kv", "k", "v", expires="e"))
    kv.store(b"a", b"1", expires_at=4_000_000_000.123)
    item = kv.get_many([b"a"])[0]
    assert item is not None
    assert item.expires_at == 4_000_000_000.123


def test_rows_of_other_programs_are_read_as_they_are(make: Open, mariadb: MariaDb) -> None:
    columns = "k VARBINARY(9) PRIMARY KEY, v BLOB, f INT, e DOUBLE, n BIGINT"
    kv = make(columns, Table("kv", "k", "v", flags="f", expires="e", version="n"))
    mariadb.sql("INSERT INTO kv VALUES ('a', 'x', NULL, NULL, NULL), ('b', NULL, 1, NULL, 1)")
    item = kv.get_many([b"a"])[0]
    assert item is not None
    assert (item.value, item.flags, item.expires_at, item.version) == (b"x", 0, None, 0)
    assert values(kv, b"b") == [None], "a row without a value is no key"
    assert kv.store(b"b", b"y", mode=Mode.ADD) is Outcome.STORED
    assert kv.store(b"a", b"z", mode=Mode.CAS, version=0) is Outcome.STORED
    assert values(kv, b"a", b"b") == [b"z", b"y"]


# ---- other rows


def test_where_keeps_to_its_rows(make: Open, mariadb: MariaDb) -> None:
    columns = "k VARBINARY(9), kind VARCHAR(9), deleted INT, v BLOB, UNIQUE (kind, deleted, k)"
    kv = make(columns, where=(("kind", "it's"), ("deleted", 0)))
    mariadb.sql("INSERT INTO kv VALUES ('a', 'other', 0, 'x'), ('a', %s, 1, 'y')", ["it's"])
    others = mariadb.sql("SELECT * FROM kv ORDER BY v")
    assert values(kv, b"a") == [None]
    assert kv.delete_many([b"a"]) == 0
    assert kv.store(b"a", b"1", mode=Mode.ADD) is Outcome.STORED
    kv.put_many([(b"a", Put(b"2")), (b"b", Put(b"3"))])
    assert kv.append(b"a", b"!", create=False) == 2
    assert values(kv, b"a", b"b") == [b"2!", b"3"]
    assert kv.count() == 2
    assert (b"a", "it's", 0, b"2!") in mariadb.sql("SELECT * FROM kv")
    kv.clear()
    assert mariadb.sql("SELECT * FROM kv ORDER BY v") == others


def test_a_row_that_where_leaves_aside_is_never_overwritten(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, deleted INT, v BLOB", where=(("deleted", 0),))
    mariadb.sql("INSERT INTO kv VALUES ('a', 1, 'old')")
    for ask in (
        lambda: kv.store(b"a", b"new"),
        lambda: kv.store(b"a", b"new", mode=Mode.ADD),
        lambda: kv.put_many([(b"b", Put(b"1")), (b"a", Put(b"new"))]),
    ):
        error = refusal(ask)
        assert error.kind == "schema"
        assert "another row is in the way" in str(error)
    assert mariadb.sql("SELECT * FROM kv") == [(b"a", 1, b"old")]
    kv.store(b"b", b"1")
    kv.store(b"b", b"2")
    assert values(kv, b"b") == [b"2"]


def test_a_row_with_the_same_value_in_another_unique_column_is_never_overwritten(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v VARBINARY(9) UNIQUE")
    kv.store(b"a", b"1")
    kv.store(b"a", b"2")
    error = refusal(lambda: kv.store(b"b", b"2"))
    assert (error.kind, "another row is in the way" in str(error)) == ("schema", True)
    assert mariadb.sql("SELECT * FROM kv") == [(b"a", b"2")]


def test_a_fixed_value_of_another_type_than_its_column_is_refused(make: Open) -> None:
    for where in ((("deleted", "no"),), (("kind", 0),)):
        kv = make("k VARBINARY(9) PRIMARY KEY, deleted INT, kind VARCHAR(9), v BLOB", where=where)
        error = refusal(lambda kv=kv: kv.get_many([b"a"]))  # type: ignore[misc]
        assert f"column '{where[0][0]}'" in str(error)
        assert "is not of the type of the value that `where` gives it" in str(error)


def test_rows_without_a_key_are_none(make: Open, mariadb: MariaDb) -> None:
    kv = make("id INT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE, v BLOB", Table("kv", "k", "v", id="id"))
    kv.store(b"1", b"x")
    mariadb.sql("INSERT INTO kv (k, v) VALUES (NULL, 'y'), (5, NULL)")
    assert (kv.count(), kv.scan(0, 10)) == (1, (0, [b"1"]))


def test_reserved_words_are_names_like_others(make: Open) -> None:
    kv = make("`select` VARBINARY(9) PRIMARY KEY, `from` BLOB", Table("kv", "select", "from"))
    kv.store(b"a", b"1")
    assert values(kv, b"a") == [b"1"]


# ---- sizes


def test_a_request_beyond_max_allowed_packet_is_refused_before_it_is_sent(make: Open, mariadb: MariaDb) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v LONGBLOB")
    kv.store(b"a", b"1")
    connected = mariadb.sql("SHOW STATUS LIKE 'Connections'")
    error = refusal(lambda: kv.store(b"a", bytes(9 * 1024 * 1024)))
    assert error.kind == "size"
    assert re.search(r"the statement has 188\d{5} bytes, the server takes 16777\d{3} \(max_allowed", str(error))
    error = refusal(lambda: kv.put_many([(b"b", Put(b"2")), (b"c", Put(bytes(9 * 1024 * 1024)))]))
    assert error.kind == "size"
    assert values(kv, b"a", b"b", b"c") == [b"1", None, None]
    pieces = [(b"%d" % number, Put(bytes(1024 * 1024))) for number in range(12)]
    kv.put_many(pieces)
    assert [len(value or b"") for value in values(kv, *[key for key, _ in pieces])] == [1024 * 1024] * 12
    after = mariadb.sql("SHOW STATUS LIKE 'Connections'")
    assert int(after[0][1]) - int(connected[0][1]) <= 2, "the connection is still good"


def test_a_key_that_is_too_long_is_a_miss_and_cannot_be_stored(make: Open) -> None:
    kv = make("k VARBINARY(9) PRIMARY KEY, v TINYBLOB")
    assert values(kv, b"0123456789") == [None]
    assert kv.delete_many([b"0123456789"]) == 0
    error = refusal(lambda: kv.store(b"0123456789", b"1"))
    assert (error.kind, "'k'" in str(error)) == ("value", True)
    error = refusal(lambda: kv.store(b"a", bytes(256)))
    assert (error.kind, "'v'" in str(error)) == ("value", True)


# ---- locks


def test_a_locked_row_fails_alone_and_soon(mariadb: MariaDb) -> None:
    with open_mysql(mariadb, timeout=Timeout(1000, 400, 1000)) as kv, mariadb.connect() as other:
        kv.put_many([(b"a", Put(b"1")), (b"b", Put(b"2"))])
        other.begin()
        other.cursor().execute("SELECT * FROM kv WHERE k = 'a' FOR UPDATE")
        began = time.monotonic()
        for ask in (lambda: kv.store(b"a", b"3"), lambda: kv.incr_signed(b"a", 1), lambda: kv.delete_many([b"a"])):
            error = refusal(ask)
            assert error.kind == "timeout"
            assert "a lock" in str(error)
        assert time.monotonic() - began < 3 * 1.0, "the server itself counts in seconds"
        assert values(kv, b"a", b"b") == [b"1", b"2"], "reading needs no lock"
        assert kv.incr_signed(b"b", 1) == 3
        other.rollback()
        assert kv.incr_signed(b"a", 1) == 2
