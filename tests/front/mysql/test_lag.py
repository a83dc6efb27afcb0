"""A reader behind its writer: noticed beside the requests, not read from, and read from again when it is back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.front.mysql.conftest import PATIENT, Front, StartFront
from tests.kit.mariadb import PASSWORD, USER, MariaDb
from tests.kit.wait import wait_for

SETTINGS = f"{PATIENT}\n  max_lag_s = 2"


class Replicated:
    """A writer and its replica."""

    def __init__(self, own: Callable[[MariaDb], MariaDb]) -> None:
        self.writer = own(MariaDb("--log-bin=bin", "--server-id=1"))
        self.reader = own(MariaDb("--server-id=2"))
        self.writer.sql(f"GRANT REPLICATION SLAVE, SLAVE MONITOR ON *.* TO {USER}@'127.0.0.1'")
        self.follow(0)

    def follow(self, delay_s: int) -> None:
        self.reader.sql(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %s, MASTER_USER = %s, MASTER_PASSWORD = %s,"
            " MASTER_USE_GTID = no, MASTER_LOG_FILE = 'bin.000001', MASTER_LOG_POS = 4",
            (self.writer.port, USER, PASSWORD),
        )
        self.delay(delay_s)

    def delay(self, seconds: int) -> None:
        self.reader.sql("STOP SLAVE")
        self.reader.sql(f"CHANGE MASTER TO MASTER_DELAY = {seconds}")
        self.reader.sql("START SLAVE")

    def value(self, key: str) -> bytes | None:
        """As the reader has it."""
        rows = self.reader.sql("SELECT v FROM kv WHERE k = %s", (key,))
        return rows[0][0] if rows else None


@pytest.fixture
def two(own: Callable[[MariaDb], MariaDb]) -> Replicated:
    return Replicated(own)


@pytest.fixture
def front(start_front: StartFront, two: Replicated) -> Front:
    front = start_front([two.reader], [two.writer], settings=SETTINGS)
    wait_for(lambda: not is_late(front), "the reader is known to be in time")
    return front


def is_late(front: Front) -> bool:
    return bool(front.node("a")["late"])


def reads(front: Front) -> tuple[int, int]:
    """Statements that read: at the reader, at the writer."""
    return front.node("a")["by_class"]["read"], front.node("wa")["by_class"]["read"]


def where(front: Front) -> str:
    """Which of the two answers a read."""
    before = reads(front)
    front.redis().get("k")
    at_reader, at_writer = (now - then for now, then in zip(reads(front), before, strict=True))
    return {(1, 0): "reader", (0, 1): "writer"}[at_reader, at_writer]


def test_a_reader_whose_replication_stopped_is_not_read_from(front: Front, two: Replicated) -> None:
    client = front.redis()
    client.set("k", "old")
    wait_for(lambda: client.get("k") == b"old", "the reader has it")
    assert where(front) == "reader"
    two.reader.sql("STOP SLAVE SQL_THREAD")
    wait_for(lambda: is_late(front), "the reader is late")
    front.fleet.wait_log("its replication does not run")
    client.set("k", "new")
    assert client.get("k") == b"new", "the writer was asked"
    assert two.value("k") == b"old"
    assert (where(front), is_late(front)) == ("writer", True)
    assert front.node("wa")["late"] == 0
    two.reader.sql("START SLAVE")
    wait_for(lambda: not is_late(front), "the reader is back")
    front.fleet.wait_log("replica.back")
    assert where(front) == "reader"
    assert client.get("k") == b"new"
    events = json.loads(front.fleet.http("GET", "/events")[1])["events"]
    told = [event["event"] for event in events if event["fields"].get("instance") == "user"]
    told = [event for event in told if event.startswith("replica.")]
    assert told == ["replica.late", "replica.back"]


BEAT = f'{PATIENT}\n  max_lag_s = 3\n  heartbeat = {{ name = "beat", time = "at", where = {{ id = 1 }} }}'


@pytest.mark.parametrize(("column", "now"), [
    ("DATETIME(6)", "UTC_TIMESTAMP(6)"),
    ("TIMESTAMP(6)", "NOW(6)"),
    ("VARCHAR(26)", "DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%f')"),
    ("DOUBLE", "UNIX_TIMESTAMP(NOW(6))"),
])  # fmt: skip
def test_a_heartbeat_says_how_far_a_reader_is(
    start_front: StartFront, own: Callable[[MariaDb], MariaDb], column: str, now: str
) -> None:
    reader, writer = own(MariaDb("--default-time-zone=+05:00")), own(MariaDb())
    front = start_front([reader], [writer], settings=BEAT)
    front.fleet.wait_log("table beat: error 1146: Table 'app.beat' doesn't exist")
    assert (where(front), is_late(front)) == ("writer", True), "nothing is known of it"
    reader.sql(f"CREATE TABLE beat (id INT PRIMARY KEY, at {column})")

    def beat() -> None:
        reader.sql(f"REPLACE INTO beat VALUES (1, {now}), (2, {now})")

    def is_in_time() -> bool:
        beat()
        return not is_late(front)

    wait_for(is_in_time, "the reader is in time")
    assert front.node("a")["lag_s"] < 3
    assert where(front) == "reader"

    def is_late_by_the_other_row() -> bool:
        reader.sql(f"UPDATE beat SET at = {now} WHERE id = 2")
        return is_late(front)

    wait_for(is_late_by_the_other_row, "nobody writes its time any more")
    assert front.node("a")["lag_s"] > 3
    assert where(front) == "writer"
    front.fleet.wait_log("behind its writer, max_lag_s is 3")


def test_a_reader_that_lags_is_not_read_from_until_it_is_well_back(front: Front, two: Replicated) -> None:
    client = front.redis()
    two.delay(3600)
    for number in range(3):
        client.set("k", number)
    wait_for(lambda: front.node("a")["lag_s"] > 2, "the reader lags", 20)
    wait_for(lambda: is_late(front), "the reader is late")
    front.fleet.wait_log("behind its writer, max_lag_s is 2")
    assert client.get("k") == b"2"
    assert two.value("k") is None
    assert where(front) == "writer"
    two.delay(0)
    wait_for(lambda: two.value("k") == b"2", "the reader has all")
    wait_for(lambda: not is_late(front), "the reader is back")
    assert where(front) == "reader"
    front.fleet.wait_log("replica.back")


def test_a_reader_that_is_gone_is_not_read_from(front: Front, two: Replicated) -> None:
    client = front.redis()
    client.set("k", "x")
    two.reader.shut_down()
    wait_for(lambda: is_late(front), "the reader is known to be gone")
    assert client.get("k") == b"x"
    two.reader.start()
    wait_for(lambda: not is_late(front), "the reader is back", 20)
    assert where(front) == "reader"


def test_who_may_not_ask_is_told_so(start_front: StartFront, two: Replicated) -> None:
    two.writer.sql(f"REVOKE SLAVE MONITOR ON *.* FROM {USER}@'127.0.0.1'")
    front = start_front([two.reader], [two.writer], settings=SETTINGS)
    front.fleet.wait_log("replica.late")
    assert "1227" in front.fleet.read_log()
    client = front.redis()
    client.set("k", "x")
    assert client.get("k") == b"x"
    assert where(front) == "writer"


def test_a_server_that_is_no_replica_is_told(start_front: StartFront, mariadb: MariaDb, two: Replicated) -> None:
    mariadb.sql(f"GRANT SLAVE MONITOR ON *.* TO {USER}@'127.0.0.1'")
    front = start_front([mariadb], [two.writer], settings=SETTINGS)
    front.fleet.wait_log("it is no replica")
    assert where(front) == "writer"
