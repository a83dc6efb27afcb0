"""What servers say of their replication, and when a reader comes and goes by it."""

from __future__ import annotations

import pytest

from hyper_proxy.config.model import Level, Server, Table
from hyper_proxy.conn_pool.sql_lag import Lag, Status, read_status
from hyper_proxy.conn_pool.sql_node import SqlNode


@pytest.mark.parametrize(("rows", "seconds", "why"), [
    ([], None, "it is no replica"),
    ([{"Seconds_Behind_Master": b"0"}], 0.0, ""),
    ([{"Seconds_Behind_Source": b"7", "Replica_SQL_Running": b"Yes"}], 7.0, ""),
    ([{"Seconds_Behind_Master": b"3"}, {"Seconds_Behind_Master": b"9"}], 9.0, ""),
    ([{"Seconds_Behind_Source": None}], None, "its replication does not run"),
    ([{"Seconds_Behind_Master": b"3"}, {"Seconds_Behind_Master": None, "Last_SQL_Error": b"1062 twice",
                                        "Last_IO_Error": b"x"}], None, "its replication does not run: 1062 twice"),
    ([{"Seconds_Behind_Source": None, "Last_SQL_Error": b"", "Last_IO_Error": b"no way"}], None,
     "its replication does not run: no way"),
])  # fmt: skip
def test_what_servers_say(rows: list[Status], seconds: float | None, why: str) -> None:
    assert read_status(rows) == (seconds, why)


@pytest.mark.parametrize(("heard", "late"), [
    ([0], [False]),
    ([4], [False]),
    ([5], [True]),
    ([None], [True]),
    ([0, 5, 0, 0, 0], [False, True, True, True, False]),
    ([5, 2, 2, 2], [True, True, True, False]),
    ([5, 2, 2, 3, 2, 2, 2], [True, True, True, True, True, True, False]),
    ([0, None, 0, 0, None, 0, 0, 0], [False, True, True, True, True, True, True, False]),
    ([0, 4, 3, 4], [False, False, False, False]),
])  # fmt: skip
def test_a_server_at_the_edge_does_not_come_and_go(heard: list[float | None], late: list[bool]) -> None:
    server = Server("127.0.0.1", 1)
    lag = Lag(SqlNode("user", Level("mysql", (server,), table=Table("t", "k", "v")), server), 4, None)
    assert lag.is_late, "before anything is known"
    said = []
    for seconds in heard:
        lag.heard(seconds, "it says nothing")
        said.append(lag.is_late)
    assert said == late
