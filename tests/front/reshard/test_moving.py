"""What clients see while keys move, and what an operator is told."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest
import redis

from tests.front.reshard.conftest import Moving
from tests.kit.fleet import Fleet
from tests.kit.wait import wait_for


def homes(move: Moving, keys: list[str]) -> dict[str, str]:
    """The server that each key is at."""
    kept = move.kept()
    return {key: "".join(name for name, own in zip("abc", kept, strict=True) if key.encode() in own) for key in keys}


def say(connection: Any, *words: str) -> Any:
    """One request; its reply, or the error."""
    connection.send_command(*words)
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error


def movers(move: Moving, count: int = 200) -> list[str]:
    """Keys, of which some will move."""
    keys = [f"{number}:key" for number in range(count)]
    client = move.client()
    for key in keys:
        client.set(key, "old")
    return keys


def test_a_key_is_moved_when_it_is_used_and_others_stay(moving: Callable[..., Moving]) -> None:
    move = moving()
    keys = movers(move)
    before = homes(move, keys)
    move.begin()
    assert homes(move, keys) == before
    client = move.client()
    assert client.mget(keys) == [b"old"] * len(keys)
    after = homes(move, keys)
    assert set(after.values()) == {"a", "b", "c"}
    assert {after[key] for key in keys if after[key] != before[key]} == {"c"}
    rows = move.fleet.stats()["instances"]["shop"]["nodes"]
    moved = [rows[name]["handed_over"] for name in "abc"]
    assert min(moved[:2]) > 0 and moved[2] == 0, moved
    assert client.mget(keys) == [b"old"] * len(keys)
    again = move.fleet.stats()["instances"]["shop"]["nodes"]
    assert [again[name]["handed_over"] for name in "abc"] == moved
    assert again["a"]["hand_overs"] > rows["a"]["hand_overs"]
    assert client.dbsize() == len(keys)
    assert set(client.scan_iter(count=7)) == set(client.keys()) == {key.encode() for key in keys}


def test_a_scan_meets_every_key_while_they_move(moving: Callable[..., Moving]) -> None:
    move = moving()
    keys = movers(move, 2000)
    move.begin()
    client = move.client()
    found: set[bytes] = set()
    cursor, moved = 0, 0
    while True:
        cursor, page = client.scan(cursor, count=50)
        found.update(page)
        client.mget(keys[moved : moved + 50])
        moved += 50
        if cursor == 0:
            break
    assert found == {key.encode() for key in keys}


def test_who_is_in_the_middle_of_something_begins_anew(moving: Callable[..., Moving]) -> None:
    move = moving()
    first, second = move.client(), move.client()
    told: list[str] = []

    def wait() -> None:
        try:
            second.blpop(["waited"], 60)
        except redis.ResponseError as error:
            told.append(str(error))

    first.set("watched", 1)
    late = move.client().pipeline()
    late.watch("watched")  # before the fleet hears of it
    undecided = move.client().connection_pool.get_connection()  # its transaction has no server yet
    assert say(undecided, "MULTI") == b"OK"
    waiting = threading.Thread(target=wait)
    waiting.start()
    move.announce()
    pipeline = first.pipeline()
    pipeline.watch("watched")
    move.wait_until(move.begins)
    waiting.join(10)
    assert len(told) == 1 and "begin anew" in told[0]
    for open_one in (pipeline, late):
        open_one.multi()
        open_one.incr("watched")
        with pytest.raises((redis.ResponseError, redis.WatchError)):
            open_one.execute()
    assert "begin anew" in str(say(undecided, "INCR", "watched"))
    with first.pipeline() as again:
        again.watch("watched")
        assert again.get("watched") == b"1"
        again.multi()
        again.incr("watched")
        assert again.execute() == [2]


def test_who_watches_a_key_that_goes_back_begins_anew(moving: Callable[..., Moving]) -> None:
    """Its MULTI must not reach a connection that others use, too."""
    move = moving()
    keys = movers(move)
    move.begin()
    assert move.client().mget(keys) == [b"old"] * len(keys)
    after = homes(move, keys)
    key = next(key for key in keys if after[key] == "c")
    move.announce_back()
    watching = move.client().connection_pool.get_connection()
    assert say(watching, "WATCH", key) == b"OK"
    move.wait_until(move.back)
    assert say(watching, "MULTI") == b"OK"
    assert "begin anew" in str(say(watching, "APPEND", key, "er"))
    for _ in range(6):
        assert move.client().get(key) == b"old"
    assert isinstance(say(watching, "EXEC"), redis.exceptions.ExecAbortError)


def test_a_transaction_of_which_a_part_could_not_be_sent_is_not_executed(moving: Callable[..., Moving]) -> None:
    move = moving()
    keys = [f"{{{number}:tag}}" for number in range(40)]
    client = move.client()
    for key in keys:
        client.mset({f"{key}count": 5, f"{key}probe": 5})
    move.begin()
    assert client.mget([f"{key}probe" for key in keys]) == [b"5"] * len(keys)
    tag = next(key for key in keys if f"{key}probe".encode() in move.kept()[2])
    move.to(move.new).execute_command("ACL", "SETUSER", "default", "-restore")
    connection = client.connection_pool.get_connection()
    assert say(connection, "MULTI") == b"OK"
    assert "was not sent" in str(say(connection, "INCR", f"{tag}count"))
    assert say(connection, "RPUSH", f"{tag}list", "x") == b"QUEUED"
    assert isinstance(say(connection, "EXEC"), redis.exceptions.ExecAbortError)
    assert say(connection, "MULTI") == b"OK"
    for words in (("CLIENT", "REPLY", "OFF"), ("INCR", f"{tag}count"), ("RPUSH", f"{tag}list", "x")):
        connection.send_command(*words)  # nothing is answered
    assert say(connection, "CLIENT", "REPLY", "ON") == b"OK"
    assert isinstance(say(connection, "EXEC"), redis.exceptions.ExecAbortError)
    assert client.exists(f"{tag}list") == 0


def test_all_of_a_transaction_and_of_those_who_wait_is_at_the_new_home(moving: Callable[..., Moving]) -> None:
    move = moving()
    client = move.client()
    tags = [f"{number}:tag" for number in range(40)]
    for tag in tags:
        client.rpush(f"{{{tag}}}:list", tag)
        client.set(f"{{{tag}}}:count", 5)
    move.begin()
    for tag in tags:
        with client.pipeline() as transaction:
            transaction.ping()
            transaction.incr(f"{{{tag}}}:count")
            transaction.llen(f"{{{tag}}}:list")
            assert transaction.execute() == [True, 6, 1]
        assert client.blmove(f"{{{tag}}}:list", f"{{{tag}}}:other", 5, "LEFT", "RIGHT") == tag.encode()
        assert client.eval("return redis.call('GET', KEYS[1])", 1, f"{{{tag}}}:count") == b"6"
    kept = move.kept()
    assert all(sum(f"{{{tag}}}:count".encode() in keys for keys in kept) == 1 for tag in tags)
    assert len(kept[2]) > 10
    woken: list[object] = []
    waiting = threading.Thread(target=lambda: woken.append(move.client().blpop(["queue"], 20)))
    waiting.start()
    wait_for(lambda: any(int(move.to(one).info("clients")["blocked_clients"]) for one in move.servers), "it waits")
    client.rpush("queue", "x")
    waiting.join(10)
    assert woken == [(b"queue", b"x")]


def test_a_pipeline_stays_in_order_across_the_moment(moving: Callable[..., Moving]) -> None:
    move = moving()
    client = move.client()
    move.announce()
    number = 0
    while datetime.now(UTC) < move.begins + timedelta(seconds=1.5):
        with client.pipeline(transaction=False) as pipeline:
            for key in range(30):
                pipeline.set(f"k{key}", number)
                pipeline.echo("between")
                pipeline.incr(f"k{key}")
                pipeline.get(f"k{key}")
            heard = pipeline.execute()
        assert heard == [True, b"between", number + 1, b"%d" % (number + 1)] * 30
        number += 1
    assert move.kept()[2]


def test_databases_passwords_and_users(moving: Callable[..., Moving]) -> None:
    move = moving("--requirepass", "secret", more='  username = "default"\n  password = "secret"\n  db = 2\n')
    for db in (0, 3):
        client = move.client(db=db)
        for number in range(100):
            client.set(f"{number}:key", f"{db}:{number}")
    move.begin()
    assert [move.client(db=3).get(f"{n}:key") for n in range(50)] == [b"3:%d" % n for n in range(50)]
    status, text = move.reshard()
    assert status == 0, text
    new = {db: move.to(move.new, password="secret", db=db).dbsize() for db in (2, 5)}
    assert min(new.values()) > 10
    for db in (0, 3):
        assert [move.client(db=db).get(f"{n}:key") for n in range(100)] == [b"%d:%d" % (db, n) for n in range(100)]


def test_what_cannot_be_done_while_keys_move_says_so(moving: Callable[..., Moving]) -> None:
    move = moving()
    client = move.client()
    client.set("here", 1)
    move.begin()
    for words in (["FLUSHDB"], ["MOVE", "here", "3"], ["COPY", "here", "{here}2", "DB", "3"]):
        with pytest.raises(redis.ResponseError, match="is not served while keys move"):
            client.execute_command(*words)
    assert client.get("here") == b"1"
    assert client.execute_command("COPY", "here", "{here}2") == 1


def test_what_an_old_server_says_is_right_and_what_stands_at_the_new_one_is_replaced(
    moving: Callable[..., Moving],
) -> None:
    """A key that a request was not told of: handed over, but the answer lost."""
    move = moving()
    keys = movers(move)
    for key in keys:
        move.to(move.new).set(key, "stray")
    move.begin()
    client = move.client()
    for key in keys[:100]:
        assert client.append(key, "+") == 4
    status, text = move.reshard()
    assert status == 0, text
    assert client.mget(keys) == [b"old+"] * 100 + [b"old"] * 100


def test_a_moment_that_has_come_is_refused_by_a_running_fleet(moving: Callable[..., Moving]) -> None:
    move = moving()
    client = move.client()
    client.set("x", 1)
    move.begins = datetime.now(UTC) + timedelta(seconds=3)
    move.fleet.write(move.config(move.route()))
    verdict = move.fleet.reload()
    line = next(n for n, text in enumerate(move.fleet.file.read_text().splitlines(), 1) if "begins" in text)
    assert not verdict.accepted
    place = f"{move.fleet.file}:{line}: error: instance[0].level[0].route: `begins`, or"
    assert verdict.body["error"].startswith(place)
    assert "seconds ahead" in verdict.body["error"]
    assert (verdict.body["line"], verdict.body["key"]) == (line, "instance[0].level[0].route")
    assert client.get("x") == b"1"


def test_the_tool_moves_nothing_by_a_file_that_the_fleet_has_refused(moving: Callable[..., Moving]) -> None:
    move = moving()
    keys = movers(move)
    move.begins = datetime.now(UTC) - timedelta(minutes=1)
    move.fleet.write(move.config(move.route()))
    assert not move.fleet.reload().accepted
    status, text = move.reshard()
    assert status == 1 and "has other servers or another route for 'shop' than the file" in text
    assert move.client().mget(keys) == [b"old"] * len(keys)
    assert not move.kept()[2]


def test_a_fleet_that_starts_later_moves_keys_at_once(moving: Callable[..., Moving]) -> None:
    move = moving()
    keys = movers(move)
    move.begins = datetime.now(UTC) - timedelta(minutes=1)
    move.fleet.stop()
    with Fleet(move.config(move.route()), move.folder):
        assert move.client().mget(keys) == [b"old"] * len(keys)
    assert move.kept()[2]


def test_the_tool_looks_ahead_and_warns_of_what_would_come_to_light(moving: Callable[..., Moving]) -> None:
    move = moving()
    movers(move)
    status, text = move.reshard()
    assert status == 1 and "has no route `move`" in text
    move.begins = datetime.now(UTC) + timedelta(hours=1)
    move.load(move.config(move.route()))
    status, text = move.reshard("--json")
    facts = [json.loads(line) for line in text.splitlines()]
    assert status == 1 and [fact["state"] for fact in facts] == ["too early"]
    assert facts[0]["to_move"] + facts[0]["stay"] == 200 and facts[0]["to_move"] > 20
    for number in range(200):
        move.to(move.new).set(f"{number}:old", "long deleted")
    status, text = move.reshard()
    assert status == 1 and "will be there again" in text
    assert move.kept()[2] == {b"%d:old" % number for number in range(200)}


def test_who_stops_the_tool_twice_need_not_wait_for_a_server_that_hangs(moving: Callable[..., Moving]) -> None:
    move = moving()
    movers(move)
    move.begins = datetime.now(UTC) + timedelta(hours=1)
    move.load(move.config(move.route()))
    hung = move.servers[0]
    hung.freeze()
    tool = move.tool()

    def asks_it() -> bool:
        return any(one.raddr and one.raddr.port == hung.port for one in psutil.Process(tool.pid).net_connections())

    def has_ended() -> bool:
        tool.send_signal(signal.SIGINT)
        return tool.poll() is not None

    wait_for(asks_it, "the tool asks the server that hangs")
    wait_for(has_ended, "the tool has ended", 10)
    assert tool.returncode == 130 and "stopped;" in tool.communicate()[0]
    hung.thaw()
