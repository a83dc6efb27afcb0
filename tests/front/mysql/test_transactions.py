"""What depends on the old value is a transaction that locks its rows; who is in the way is waited for in read_ms."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.front.mysql.conftest import StartFront
from tests.front.mysql.test_faults import row_locked
from tests.kit.mariadb import MariaDb
from tests.kit.wait import wait_for


class Asked:
    """A request in a thread of its own, and what came of it."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.answer: Any = None
        self.thread = threading.Thread(target=self._run, args=(ask,))
        self.thread.start()

    def _run(self, ask: Callable[[], Any]) -> None:
        try:
            self.answer = ask()
        except redis.RedisError as error:
            self.answer = error

    def end(self) -> Any:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.answer


def waits(server: MariaDb) -> bool:
    """Does a transaction wait for a lock?"""
    return bool(server.sql("SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"))


def test_a_deadlock_is_tried_again(start_front: StartFront, mariadb: MariaDb) -> None:
    client = start_front([mariadb]).redis()
    client.mset(dict.fromkeys("abcdefgh", "x"))
    with mariadb.connect() as other, other.cursor() as cursor:
        other.begin()
        cursor.execute("UPDATE kv SET v = 'y' WHERE k IN ('b', 'c', 'd', 'e', 'f', 'g', 'h')")
        asked = Asked(lambda: client.delete("a", "b"))
        wait_for(lambda: waits(mariadb), "the request has a and wants b")
        cursor.execute("UPDATE kv SET v = 'y' WHERE k = 'a'")  # wants a and has b; the server ends the smaller one
        other.commit()
    assert asked.end() == 2
    assert client.mget("a", "b", "c") == [None, None, b"y"]


def test_a_lock_that_is_given_up_in_time_is_waited_for(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb])
    client = front.redis()
    client.set("a", 1)
    with row_locked(mariadb, "a"):
        asked = Asked(lambda: client.incr("a"))
        wait_for(lambda: front.node()["errors"].get("locked", 0) > 0, "the server has given the statement up")
    assert asked.end() == 2
    assert front.node()["connections"] == 1, "the connection was still good"


def test_a_lock_that_is_kept_is_an_error_by_then(start_front: StartFront, mariadb: MariaDb) -> None:
    front = start_front([mariadb])
    client = front.redis()
    client.set("a", 1)
    with row_locked(mariadb, "a"), pytest.raises(redis.ResponseError, match="table kv: another transaction keeps"):
        client.incr("a")
    assert front.node()["errors"]["locked"] <= 2
    assert client.incr("a") == 2


def test_a_change_reads_and_locks_at_read_committed(start_front: StartFront, mariadb: MariaDb) -> None:
    client = start_front([mariadb]).redis()
    client.set("a", 1)
    mariadb.sql("SET GLOBAL log_output = 'TABLE'")
    mariadb.sql("TRUNCATE mysql.general_log")
    mariadb.sql("SET GLOBAL general_log = ON")
    try:
        client.incr("a")
    finally:
        mariadb.sql("SET GLOBAL general_log = OFF")
    said = [row[0] for row in mariadb.sql("SELECT argument FROM mysql.general_log")]
    ours = [text for text in said if text.startswith(("START", "SELECT `k`", "UPDATE", "COMMIT"))]
    assert [text.split()[0] for text in ours] == ["START", "SELECT", "UPDATE", "COMMIT"]
    assert ours[1].endswith("FOR UPDATE")
    with mariadb.connect() as other, other.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.tx_isolation")
        assert cursor.fetchone() == ("REPEATABLE-READ",), "the server's own, which would lock what is not there"
        other.begin()
        cursor.execute("SELECT * FROM kv WHERE k = 'a' FOR UPDATE")
        asked = Asked(lambda: (client.setnx("b", 1), client.setnx("c", 1)))
        assert asked.end() == (True, True), "keys that are not there are not locked by the neighbour"
        other.rollback()
