"""Values of several columns: JSON objects for every client, hashes for those of redis as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPConnection

import pytest
import redis

from tests.front.mysql.conftest import Front, StartFront
from tests.kit.mariadb import MariaDb
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

MAKE = (
    "CREATE TABLE {name} (k VARBINARY(99) PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_general_ci, age INT UNSIGNED,"
    " price DECIMAL(7,2), ratio DOUBLE, photo BLOB, born DATE, seen DATETIME(3), level INT NOT NULL DEFAULT 1,"
    " other TEXT, e DOUBLE)"
)
NAMES = ["name", "age", "price", "ratio", "photo", "born", "seen", "level"]
TABLE = f'{{ name = "kv", key = "k", value = {json.dumps(NAMES)}, expires = "e" }}'

WHOLE = (
    '{"name":"Ægir \\"x\\"","age":4294967295,"price":-12.50,"ratio":1e100,"photo":{"base64":"/wA="},'
    '"born":"1999-12-31","seen":"2026-01-02 03:04:05.678","level":-3}'
)


@pytest.fixture
def front(start_front: StartFront, mariadb: MariaDb) -> Front:
    return start_front([mariadb], table=TABLE, make=MAKE)


def test_an_object_comes_back_as_it_was_written(front: Front, mariadb: MariaDb) -> None:
    client, other = front.redis(), front.memcache()
    assert client.set("a", WHOLE)
    assert client.get("a") == WHOLE.encode()
    assert other.get("a") == WHOLE.encode()
    rows = mariadb.sql("SELECT name, age, price, ratio, HEX(photo), born, seen, level FROM kv")
    assert [str(field) for field in rows[0]] == [
        'Ægir "x"', "4294967295", "-12.50", "1e+100", "FF00", "1999-12-31", "2026-01-02 03:04:05.678000", "-3"
    ]  # fmt: skip
    for text in (client.get("a"), other.get("a")):
        assert other.set("b", text)
        assert client.get("b") == WHOLE.encode()


def test_null_is_null_and_what_is_left_out_is_the_default(front: Front, mariadb: MariaDb) -> None:
    client = front.redis()
    mariadb.sql("INSERT INTO kv (k, other) VALUES ('a', 'kept')")
    assert client.get("a") is not None, "the column level is not null"
    client.set("a", '{"age":5,"name":null}')
    client.mset({"b": ' { "level" : 7 , "name" : "x" } '})
    nothing = '"price":null,"ratio":null,"photo":null,"born":null,"seen":null'
    assert client.mget("a", "b", "none") == [
        f'{{"name":null,"age":5,{nothing},"level":1}}'.encode(),
        f'{{"name":"x","age":null,{nothing},"level":7}}'.encode(),
        None,
    ]
    assert mariadb.sql("SELECT k, level, other FROM kv ORDER BY k") == [(b"a", 1, "kept"), (b"b", 7, None)]
    assert client.expire("b", 100)
    assert 0 < client.ttl("b") <= 100
    assert client.delete("a", "b") == 2


REFUSED: list[tuple[str | bytes, str]] = [
    ("", "the value must be a JSON object: Expecting value"),
    ("{", "the value must be a JSON object"),
    ("[1]", "the value must be a JSON object, whose members are columns"),
    ("7", "the value must be a JSON object, whose members are columns"),
    ('{"age":NaN}', "NaN is no JSON"),
    (b'{"name":"\xff"}', "the value must be a JSON object: 'utf-8' codec"),
    ('{"age":1,"age":2}', "a member is named twice"),
    ("[" * 100_000, "the value must be a JSON object"),
    ("{}", "the object gives no column a value; there are name, age, price"),
    ('{"nome":"x"}', "'nome' is no column of this instance's values; there are name, age, price"),
    ('{"other":"x"}', "'other' is no column of this instance's values"),
    ('{"age":"x"}', "table kv: column 'age' (int(10) unsigned) holds whole numbers from 0 to 4294967295"),
    ('{"age":-1}', "column 'age' (int(10) unsigned) holds whole numbers"),
    ('{"age":1.0}', "column 'age' (int(10) unsigned) holds whole numbers"),
    ('{"age":true}', "column 'age' (int(10) unsigned) takes a number, not true or false"),
    ('{"name":5}', "column 'name' (varchar(20), utf8mb4_general_ci) takes a string, not a number"),
    ('{"name":["x"]}', "takes a string, not an array"),
    ('{"name":{"base64":"/w=="}}', "column 'name' (varchar(20), utf8mb4_general_ci) holds text, and this is not UTF-8"),
    ('{"name":"\\ud800"}', "holds text, and this is not UTF-8"),
    ('{"price":1.005}', "column 'price' (decimal(7,2)) holds 5 digits before the point and 2 behind it"),
    ('{"price":100000}', "holds 5 digits before the point"),
    ('{"ratio":1e999}', "column 'ratio' (double) takes a number that a DOUBLE can be"),
    ('{"photo":{"base64":"x"}}', "column 'photo' (blob) takes a string, or {\"base64\": \"...\"}, not an object"),
    ('{"born":"31.12.1999"}', "column 'born' (date) takes a string of the form YYYY-MM-DD"),
    ('{"seen":"2026-01-02 03:04:05"}', "takes a string of the form YYYY-MM-DD hh:mm:ss.fff"),
    ('{"age":1,"level":null}', "column 'level' (int(11)) can't be null"),
]  # fmt: skip


def test_what_no_row_can_hold_is_the_clients_error(front: Front, mariadb: MariaDb) -> None:
    client = front.redis()
    for value, says in REFUSED:
        with pytest.raises(redis.ResponseError) as caught:
            client.set("a", value)
        assert says in str(caught.value)
        if "column '" in says:
            assert f"instance 'user', a ({mariadb.address}), table kv: " in str(caught.value)
    assert mariadb.sql("SELECT * FROM kv") == []
    assert client.ping()


def test_what_the_server_refuses_names_table_and_column(front: Front, mariadb: MariaDb) -> None:
    with pytest.raises(redis.ResponseError) as caught:
        front.redis().set("a", json.dumps({"name": "x" * 21}))
    assert "instance 'user'" in str(caught.value)
    for part in (mariadb.address, "table kv", "'name'", "1406"):
        assert part in str(caught.value)
    with pytest.raises(redis.ResponseError, match=r"table kv: error 1292.*born"):
        front.redis().set("a", json.dumps({"born": "2026-02-30"}))


def test_hashes(front: Front, mariadb: MariaDb) -> None:
    client = front.redis()
    assert client.hset("a", mapping={"name": "Ann", "age": 30}) == 2
    assert client.hset("a", "photo", b"\xff\x00") == 1
    assert client.hset("a", "name", "Bea") == 0
    assert client.hgetall("a") == {b"name": b"Bea", b"age": b"30", b"photo": b"\xff\x00", b"level": b"1"}
    assert (client.hget("a", "age"), client.hget("a", "price"), client.hget("none", "age")) == (b"30", None, None)
    assert client.hmget("a", "name", "born", "level") == [b"Bea", None, b"1"]
    assert client.execute_command("HMSET", "a", "price", "12.5", "born", "2000-01-01") is True
    assert client.hvals("a") == [b"Bea", b"30", b"12.50", b"\xff\x00", b"2000-01-01", b"1"]
    assert client.hkeys("a") == [b"name", b"age", b"price", b"photo", b"born", b"level"]
    assert (client.hlen("a"), client.hlen("none")) == (6, 0)
    assert (client.hexists("a", "age"), client.hexists("a", "seen")) == (True, False)
    assert (client.hstrlen("a", "name"), client.hstrlen("a", "seen")) == (3, 0)
    assert (client.hsetnx("a", "age", 1), client.hsetnx("b", "age", 1)) == (False, True)
    assert (client.hincrby("a", "age", 12), client.hincrby("b", "level", -3)) == (42, -2)
    assert client.hdel("a", "age", "photo", "seen") == 2
    assert mariadb.sql("SELECT name, age, photo FROM kv WHERE k = 'a'") == [("Bea", None, None)]
    assert (client.type("a"), client.type("none")) == (b"hash", b"none")
    assert (client.hkeys("none"), client.hgetall("none")) == ([], {})


def test_hashes_refuse_what_is_no_column(front: Front, mariadb: MariaDb) -> None:
    client = front.redis()
    client.hset("a", "name", "x")
    asks: list[Callable[[], object]] = [
        lambda: client.hget("a", "nome"), lambda: client.hget("none", "nome"),
        lambda: client.hmget("a", "name", "nome"),
        lambda: client.hset("a", mapping={"age": 1, "nome": "x"}), lambda: client.hsetnx("a", "nome", "x"),
        lambda: client.hdel("a", "nome"), lambda: client.hexists("a", "nome"), lambda: client.hincrby("a", "nome"),
        lambda: client.hstrlen("a", "nome"),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(redis.ResponseError, match="'nome' is no column of this instance's values; there are name"):
            ask()
    for ask, says in (
        (lambda: client.hset("a", "age", "x"), r"column 'age' \(int\(10\) unsigned\) holds whole numbers"),
        (lambda: client.hincrby("a", "age", -1), r"column 'age' \(int\(10\) unsigned\) holds whole numbers"),
        (lambda: client.hincrby("a", "name"), "hash value is not an integer"),
        (lambda: client.hset("a", "name", b"\xff"), "this is not UTF-8"),
        (lambda: client.hdel("a", "level"), "can't be null"),
        (lambda: client.execute_command("HSET", "a", "name"), "wrong number of arguments"),
    ):
        with pytest.raises(redis.ResponseError, match=says):
            ask()
    assert client.hgetall("a") == {b"name": b"x", b"level": b"1"}


def test_the_last_field_takes_the_key_with_it(start_front: StartFront, mariadb: MariaDb) -> None:
    make = "CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, k VARBINARY(9) UNIQUE, x INT, y INT)"
    table = '{ name = "kv", key = "k", value = ["x", "y"], id = "id" }'
    client = start_front([mariadb], table=table, make=make).redis()
    client.hset("a", mapping={"x": 1, "y": 2})
    mariadb.sql("INSERT INTO kv (k) VALUES ('b')")
    assert (client.exists("b"), client.dbsize(), client.keys("*")) == (0, 1, [b"a"]), "a row without values is no key"
    assert client.scan(0, _type="hash")[1] == [b"a"]
    assert client.hdel("a", "x") == 1
    assert client.hdel("a", "x", "y") == 1
    assert client.exists("a") == 0
    assert mariadb.sql("SELECT k FROM kv") == [(b"b",)]


def test_hashes_need_columns(start_front: StartFront, mariadb: MariaDb) -> None:
    client = start_front([mariadb]).redis()
    with pytest.raises(redis.ResponseError, match="'hget' is not served"):
        client.hget("a", "x")


@pytest.mark.parametrize(("columns", "says"), [
    ("x FLOAT", "column 'x' (float) can't be a part of a JSON object"),
    ("x BIT(3)", "column 'x' (bit(3)) can't be a part of a JSON object"),
    ("x DOUBLE(9,3)", "column 'x' (double(9,3)) rounds"),
    ("y INT, x INT AS (y + 1)", "column 'x' (int(11)) is made by the server from others"),
])  # fmt: skip
def test_columns_that_can_be_no_members_are_refused(
    start_front: StartFront, mariadb: MariaDb, columns: str, says: str
) -> None:
    make = f"CREATE TABLE {{name}} (k VARBINARY(9) PRIMARY KEY, {columns})"
    client = start_front([mariadb], table='{ name = "kv", key = "k", value = ["x"] }', make=make).redis()
    with pytest.raises(redis.ResponseError) as caught:
        client.get("a")
    assert says in str(caught.value)


def test_hashes_below_a_cache(start_front: StartFront, mariadb: MariaDb, redis_nodes: list[Running]) -> None:
    front = start_front([mariadb], table=TABLE, make=MAKE)
    cache = f'  [[instance.level]]\n  storage = "redis"\n  servers = ["{redis_nodes[0].address} cache"]\n'
    front.fleet.write(front.text().replace("  [[instance.level]]\n", cache + "  [[instance.level]]\n"))
    assert front.fleet.reload().accepted
    client, other = front.redis(), front.memcache()
    assert client.hset("a", mapping={"name": "Ann", "age": 1}) == 2
    assert client.hincrby("a", "age", 1) == 2
    assert client.hgetall("a") == {b"name": b"Ann", b"age": b"2", b"level": b"1"}
    assert client.get("a") == other.get("a")
    with redis.Redis(port=redis_nodes[0].port) as direct:
        wait_for(lambda: client.hget("a", "name") and direct.get("a") == other.get("a"), "the cache has a copy", 20)
        wrong = json.dumps({"name": "from the cache"})
        direct.set("a", wrong)
        assert (client.get("a"), client.hget("a", "name")) == (wrong.encode(), b"from the cache")
    assert client.hset("a", "name", "Bea") == 0
    assert client.hmget("a", "name", "age") == [b"Bea", b"2"]


def test_http_clients_have_the_same_objects(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb], table=TABLE, make=MAKE)
    port = free_port()
    third = front.text().partition("[[instance]]")[2].partition("[[instance]]")[0]
    third = third.replace('"user"', '"web"').replace('"redis"', '"http"').replace(str(front.ports["user"]), str(port))
    third = third.replace('allow = ["KEYS"]', "")
    front.fleet.write(f"{front.text()}\n[[instance]]{third}")
    verdict = front.fleet.reload()
    assert verdict.accepted, verdict.body
    front.redis().hset("a", mapping={"name": "Ann", "photo": b"\xff"})

    def ask(method: str, body: str | None = None) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request(method, "/v1/web/a", body, {"Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, body = ask("GET")
    assert (status, body) == (200, front.redis().get("a"))
    assert ask("PUT", '{"age":7}')[0] < 300
    assert front.redis().hgetall("a") == {b"age": b"7", b"level": b"1"}
    status, body = ask("PUT", '{"age":"x"}')
    assert 400 <= status < 500
    assert b"column 'age'" in body
