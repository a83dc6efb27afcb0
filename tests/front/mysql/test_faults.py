"""Servers that die, hang, refuse and lock: their keys fail soon and by name, other keys are served, and it heals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from statistics import median
from typing import Any

import pytest
import redis

from tests.front.mysql.conftest import Front, StartFront
from tests.front.mysql.test_serving import proxied
from tests.kit.mariadb import MariaDb
from tests.kit.wait import wait_for

QUICK = (
    "timeout = { connect_ms = 300, read_ms = 400, queue_ms = 300 }\n  backoff = { base_ms = 50, max_ms = 200 }\n"
    "  max_connections = 4"
)


@pytest.fixture
def pair(mariadb: MariaDb, own: Callable[[MariaDb], MariaDb]) -> list[MariaDb]:
    """The first one may be hurt."""
    return [own(MariaDb()), mariadb]


def fault(ask: Callable[[], object], within_s: float = 5.0) -> str:
    """The error that a redis client reads, soon."""
    began = time.monotonic()
    with pytest.raises(redis.ResponseError) as caught:
        ask()
    assert time.monotonic() - began < within_s
    return str(caught.value)


def serves(ask: Callable[[], object]) -> bool:
    """Is it answered?"""
    try:
        ask()
    except redis.ResponseError:
        return False
    return True


@contextmanager
def row_locked(server: MariaDb, key: str) -> Iterator[Any]:
    """Another program's transaction that has changed a row and is not over."""
    with closing(server.connect()) as connection:
        connection.begin()
        connection.cursor().execute("SELECT * FROM kv WHERE k = %s FOR UPDATE", (key.encode(),))
        yield connection
        connection.rollback()


def hurt_and_heal(front: Front, hurt: Callable[[], None], heal: Callable[[], None], kinds: set[str]) -> None:
    """The keys of server a fail while it is hurt, those of b do not, on both fronts; then all is well."""
    client, other = front.redis(), front.memcache()
    (lost,), (kept,) = front.keys_on(0, 1), front.keys_on(1, 1)
    client.mset({lost: 1, kept: 2})
    hurt()
    where = f"instance 'user' node 'a ({front.servers[0].address})'"
    for _ in range(3):
        for ask in (lambda: client.get(lost), lambda: client.set(lost, 3), lambda: client.mget(kept, lost)):
            assert where in fault(ask)
            assert client.get(kept) == b"2"
            assert client.incr(kept) and client.set(kept, 2)
    with pytest.raises(Exception, match="instance 'page' node 'a"):
        other.get(lost)
    assert other.get(kept) == b"2"
    assert set(front.node("a")["errors"]) & kinds
    assert front.node("b")["errors"] == {}
    heal()
    wait_for(lambda: serves(lambda: client.get(lost)), "the server is back")
    assert client.incr(lost) in (2, 4), "a write that failed may have happened, or not"
    front.fleet.wait_log("node.up instance=user node=a")


def test_a_server_is_killed(start_front: StartFront, pair: list[MariaDb]) -> None:
    hurt_and_heal(start_front(pair, settings=QUICK), pair[0].kill, pair[0].start, {"reset", "refused"})


def test_a_server_hangs(start_front: StartFront, pair: list[MariaDb]) -> None:
    hurt_and_heal(start_front(pair, settings=QUICK), pair[0].freeze, pair[0].thaw, {"timeout"})


@pytest.mark.parametrize("on_partial", ["error", "nil", "element"])
def test_what_becomes_of_the_other_keys_of_a_read_is_the_instances_policy(
    start_front: StartFront, pair: list[MariaDb], on_partial: str
) -> None:
    front = start_front(pair, settings=QUICK)
    front.fleet.write(front.text().replace("protocol =", f'on_partial = "{on_partial}"\nprotocol ='))
    assert front.fleet.reload().accepted
    client, other = front.redis(), front.memcache()
    (lost,), (kept, more) = front.keys_on(0, 1), front.keys_on(1, 2)
    client.mset({kept: 1, lost: 2})
    pair[0].kill()
    fault(lambda: client.get(lost))
    keys = [kept, lost, more, kept]
    pipe = client.pipeline(transaction=False)
    pipe.mget(keys)
    (answer,) = pipe.execute(raise_on_error=False)
    if on_partial == "error":
        assert "node 'a (" in str(answer)
        assert "(1 of 3 keys)" in str(answer)
        with pytest.raises(Exception, match=r"\(1 of 3 keys\)"):
            other.get_many(keys)
    else:
        assert answer[0] == answer[3] == b"1"
        assert answer[2] is None
        assert answer[1] is None if on_partial == "nil" else "node 'a (" in str(answer[1])
        assert other.get_many(keys) == {kept: b"1"}
        assert {key: value for key, (value, _) in other.gets_many(keys).items()} == {kept: b"1"}
    assert "node 'a (" in fault(lambda: client.exists(*keys))
    assert "node 'a (" in fault(lambda: client.delete(*keys)), "the others are gone all the same"
    assert client.get(kept) is None


def test_a_server_that_hangs_keeps_nobody_waiting_who_wants_another(
    start_front: StartFront, pair: list[MariaDb]
) -> None:
    front = start_front(pair, settings=QUICK)
    (lost,), (kept,) = front.keys_on(0, 1), front.keys_on(1, 1)
    front.redis().get(lost)
    pair[0].freeze()
    stuck = [threading.Thread(target=fault, args=(lambda: front.redis().get(lost),)) for _ in range(12)]
    for thread in stuck:
        thread.start()
    client = front.redis()
    times = []
    while any(thread.is_alive() for thread in stuck):
        began = time.monotonic()
        client.get(kept)
        times.append(time.monotonic() - began)
    assert median(times) < 0.3
    pair[0].thaw()


def test_a_server_that_is_restarted_between_two_requests_is_not_noticed(
    start_front: StartFront, pair: list[MariaDb]
) -> None:
    front = start_front(pair, settings=QUICK)
    client = front.redis()
    (key,) = front.keys_on(0, 1)
    client.set(key, 1)
    pair[0].shut_down()
    pair[0].start()
    assert client.get(key) == b"1"
    assert client.incr(key) == 2
    assert front.node("a")["errors"] == {}


def test_a_connection_that_the_server_has_ended_is_not_used(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb], settings=QUICK)
    client = front.redis()
    client.set("a", 1)
    for connection in proxied(mariadb):
        mariadb.sql(f"KILL {connection}")
    wait_for(lambda: not proxied(mariadb), "it is gone")
    assert client.get("a") == b"1"
    assert front.node()["errors"] == {}
    assert front.node()["connects"] == 2


def test_a_statement_whose_connection_is_killed_fails_by_name_and_changes_nothing(
    start_front: StartFront, mariadb: MariaDb
) -> None:
    front = start_front([mariadb])
    client = front.redis()
    client.set("a", 1)
    said: list[str] = []
    with row_locked(mariadb, "a"):
        writer = threading.Thread(target=lambda: said.append(fault(lambda: front.redis().incr("a"), 10)))
        writer.start()
        wait_for(lambda: waiting(mariadb), "the write waits for the lock")
        for connection in proxied(mariadb):
            mariadb.sql(f"KILL {connection}")
        writer.join(10)
    assert "instance 'user' node 'a (127.0.0.1:" in said[0]
    assert front.node()["errors"] == {"reset": 1}
    assert client.incr("a") == 2


def waiting(server: MariaDb) -> list[Any]:
    """Statements of proxies that run."""
    return server.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'proxy' AND COMMAND = 'Query'")


def test_a_locked_row_fails_alone(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb], settings=QUICK)
    client = front.redis()
    client.mset({"a": 1, "b": 2})
    with row_locked(mariadb, "a"):
        assert "node 'a" in fault(lambda: client.incr("a"))
        assert "a lock" in fault(lambda: client.set("a", 2))
        assert (client.get("a"), client.incr("b")) == (b"1", 3)
        assert front.node()["backing_off"] == 0, "the server is not to blame"
    assert client.incr("a") == 2
    assert front.node()["errors"] == {"timeout": 2}


def test_who_finds_all_connections_in_use_waits_so_long_and_not_longer(
    start_front: StartFront, mariadb: MariaDb
) -> None:
    front = start_front([mariadb], settings=QUICK.replace("connections = 4", "connections = 1").replace("400", "8000"))
    client = front.redis()
    client.mset({"a": 1, "b": 2})
    with row_locked(mariadb, "a"):
        writer = threading.Thread(target=lambda: front.redis().incr("a"))
        writer.start()
        wait_for(lambda: waiting(mariadb), "the write waits for the lock")
        began = time.monotonic()
        said = fault(lambda: client.get("b"))
        assert time.monotonic() - began > 0.25
        assert "all 1 connections were in use for 300 ms" in said
    writer.join(10)
    assert (client.get("a"), client.get("b")) == (b"2", b"2")


def test_too_many_connections(start_front: StartFront, own: Callable[[MariaDb], MariaDb]) -> None:
    server = own(MariaDb("--max-connections=10", "--extra-max-connections=1"))
    front = start_front([server], settings=QUICK)
    held = [server.connect("proxy", "p'a\"s%s") for _ in range(10)]
    client = front.redis()
    said = fault(lambda: client.get("a"))
    assert "Too many connections" in said
    assert "node 'a" in said
    assert "busy" in front.node()["errors"]
    held.pop().close()
    wait_for(lambda: serves(lambda: client.set("a", 1)), "there is room")
    wait_for(lambda: front.node()["connections"] == 1, "one connection is all that can be had")
    failures: list[str] = []

    def work() -> None:
        mine = front.redis()
        for _ in range(10):
            try:
                mine.get("a")
            except redis.ResponseError as error:
                failures.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failures == [], "those who get no connection of their own wait for the one that there is"
    for connection in held:
        connection.close()


@pytest.mark.parametrize(("old", "new", "says"), [
    ('username = "proxy"', 'username = "nobody"', "Access denied for user"),
    ('database = "app"', 'database = "none"', "none"),
])  # fmt: skip
def test_a_login_that_is_refused(start_front: StartFront, mariadb: MariaDb, old: str, new: str, says: str) -> None:
    front = start_front([mariadb], settings=QUICK)
    front.fleet.write(front.text().replace(old, new))
    assert front.fleet.reload().accepted
    said = fault(lambda: front.redis().get("a"))
    assert f"instance 'user' node 'a ({mariadb.address})': login failed: error 104" in said
    assert says in said
    assert "p'a" not in said
    assert set(front.node()["errors"]) == {"login"}


def test_a_server_of_another_kind(start_front: StartFront, mariadb: MariaDb, redis_nodes: list[Any]) -> None:
    front = start_front([mariadb], settings=QUICK)
    front.fleet.write(front.text().replace(mariadb.address, redis_nodes[0].address))
    assert front.fleet.reload().accepted
    assert "login failed" in fault(lambda: front.redis().get("a"))
    front.fleet.write(front.text())
    assert front.fleet.reload().accepted
    assert front.redis().get("a") is None


def test_a_server_that_may_not_be_written_is_read(start_front: StartFront, own: Callable[[MariaDb], MariaDb]) -> None:
    server = own(MariaDb())
    front = start_front([server], settings=QUICK)
    client = front.redis()
    client.set("a", 1)
    server.sql("SET GLOBAL read_only = 1")
    assert "--read-only" in fault(lambda: client.set("a", 2))
    assert client.get("a") == b"1"
    server.sql("SET GLOBAL read_only = 0")
    assert client.set("a", 3)
    assert front.node()["errors"] == {"unwritable": 1}


def test_operators_take_a_reader_or_writer_out_of_service(start_front: StartFront, pair: list[MariaDb]) -> None:
    reader, writer = pair[1], pair[0]
    front = start_front([reader], [writer], settings=QUICK.replace("400", "8000"))
    client = front.redis()
    client.set("a", 1)
    client.get("a")

    def order(node: str, state: str) -> None:
        assert front.fleet.post("/node", {"instance": "user", "node": node, "state": state})[0] == 200

    order("wa", "drain")
    assert "drained by an operator" in fault(lambda: client.set("a", 2))
    assert client.get("a") is None, "reading goes on"
    wait_for(lambda: front.node("wa")["connections"] == 0, "idle connections are closed")
    order("wa", "ready")
    assert client.incr("a") == 2
    with row_locked(writer, "a"):
        said: list[str] = []
        stuck = threading.Thread(target=lambda: said.append(fault(lambda: front.redis().incr("a"), 10)))
        stuck.start()
        wait_for(lambda: waiting(writer), "the write waits for the lock")
        order("wa", "maintenance")
        stuck.join(5)
        assert not stuck.is_alive(), "what is under way is cut"
        assert "node 'wa (" in said[0]
    order("wa", "ready")
    wait_for(lambda: serves(lambda: client.incr("a")), "it serves again")
    assert front.node("wa")["requests"] > 0


def test_the_fleet_starts_though_a_server_is_away(start_front: StartFront, pair: list[MariaDb]) -> None:
    front = start_front(pair, settings=QUICK)
    assert front.fleet.stop() == 0
    pair[0].kill()
    again = type(front)(front.fleet.file.parent, pair, [], QUICK, front.password, 1)
    try:
        (lost,), (kept,) = again.keys_on(0, 1), again.keys_on(1, 1)
        client = again.redis()
        assert client.set(kept, 1)
        assert "Connection refused" in fault(lambda: client.get(lost))
        pair[0].start()
        wait_for(lambda: serves(lambda: client.set(lost, 1)), "it is there")
    finally:
        again.stop()
