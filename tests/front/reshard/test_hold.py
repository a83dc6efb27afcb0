"""What is under way when a hold begins, and what comes in it from clients that do not stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.front.reshard.conftest import HOLD_S, Moving
from tests.front.reshard.test_moving import say
from tests.kit.wait import wait_for


def wait_until(moment: datetime) -> None:
    """Until the clock says so."""
    left = (moment - datetime.now(UTC)).total_seconds()
    wait_for(lambda: datetime.now(UTC) > moment, f"it is {moment}", left + 5)


def hear(connection: Any) -> Any:
    """A reply that is still to come, or the error."""
    try:
        return connection.read_response()
    except Exception as error:  # noqa: BLE001  it is what the test looks at
        return error


def test_what_a_client_is_told_of_its_transaction_is_so_and_who_left_in_the_hold_takes_nothing(
    moving: Callable[..., Moving],
) -> None:
    """EXEC that is under way is answered; before it, the transaction ends. A BLPOP of nobody pops nothing."""
    move = moving()
    client = move.client()
    late = [f"{number}:late" for number in range(20)]
    early = [f"{number}:early" for number in range(20)]
    jobs = [f"{number}:jobs" for number in range(40)]
    client.mset(dict.fromkeys([*late, *early], 0))
    move.announce()
    hold = move.begins - timedelta(seconds=HOLD_S)
    connections = {}
    for key in [*late, *early]:
        connections[key] = move.client().connection_pool.get_connection()
        assert say(connections[key], "MULTI") == b"OK"
        assert say(connections[key], "INCR", key) == b"QUEUED"
    wait_until(hold - timedelta(seconds=0.25))
    for server in move.servers[:2]:
        server.freeze()
    for key in late:
        connections[key].send_command("EXEC")
    for key in early:
        connections[key].send_command("APPEND", key, "x")
    wait_until(hold + timedelta(seconds=0.1))
    for server in move.servers[:2]:
        server.thaw()
    assert [hear(connections[key]) for key in late] == [[1]] * len(late)
    assert [hear(connections[key]) for key in early] == [b"QUEUED"] * len(early)
    told = [str(say(connections[key], "EXEC")) for key in early]
    assert all("begin anew" in text for text in told), told
    leavers = [move.client().connection_pool.get_connection() for _ in jobs]
    for connection, key in zip(leavers, jobs, strict=True):
        connection.send_command("BLPOP", key, 0)
    stayer = move.client().connection_pool.get_connection()
    stayer.send_command("BLPOP", "0:other", 0)
    assert datetime.now(UTC) < move.begins
    for connection in leavers:
        connection.disconnect()
    move.wait_until(move.begins)
    wait_for(lambda: any(int(move.to(one).info("clients")["blocked_clients"]) for one in move.servers), "one waits")
    for key in jobs:
        client.rpush(key, "job")
    assert [client.llen(key) for key in jobs] == [1] * len(jobs)
    client.rpush("0:other", "job")
    assert hear(stayer) == [b"0:other", b"job"]
    assert client.mget(late) == [b"1"] * len(late)
    assert client.mget(early) == [b"0"] * len(early)
    for connection in connections.values():
        assert say(connection, "PING") == b"PONG"
