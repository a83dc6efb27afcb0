"""Writes go to both rooms: whatever becomes of one, both have all that was acknowledged when it serves again."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import redis

from hyper_proxy.common.keyname import digest
from tests.kit.rooms import Site, wait_until_equal, wait_until_written, writing
from tests.kit.wait import wait_for

MIRROR = 'writes = "mirror"\n    folder = "rooms"'
DOCS = Path(__file__).parents[3] / "docs" / "rooms.md"


@pytest.mark.parametrize("how", ["kill", "freeze"])
@pytest.mark.parametrize("kind", ["redis", "memcache"])
def test_no_acknowledged_write_is_lost(build: Callable[..., Site], kind: str, how: str) -> None:
    site = build(kind, MIRROR)
    with writing(site, 4) as writers:
        for side in (0, 1, 0):
            site.wait_until_served_by(0)
            site.wait_until_ready(1)
            wait_until_written(writers, 100)
            site.kill(side, how)
            if side == 0:
                site.wait_until_served_by(1)
            wait_until_written(writers, 100)
            site.revive(side, how)
            site.wait_until_served_by(0)
            wait_until_written(writers, 100)
    found = wait_until_equal(site)
    if kind == "redis":
        for writer in writers:
            own = f"c{writer.index}"
            assert found[f"{own}:count".encode()] == str(writer.number).encode()
            assert found[f"{own}:list".encode()] == [str(n).encode() for n in range(1, writer.number + 1)]
        assert found[b"shared:count"] == str(sum(writer.number for writer in writers)).encode()


def test_what_was_missed_outlives_workers_and_the_fleet(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    client = site.client()
    keys = [f"k{index}" for index in range(200)]
    for key in keys:
        client.set(key, "old")
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    for key in keys[:100]:
        client.set(key, "new")
    for pid in site.fleet.worker_pids():
        os.kill(pid, signal.SIGKILL)
    again = site.client()
    wait_for(lambda: set_one(again, keys[100]), "a new worker serves")
    for key in keys[101:150]:
        again.set(key, "new")
    site.stop()
    site.revive(0, "freeze")
    site.start(MIRROR)
    last = site.client()
    assert {last.get(key) for key in keys[:150]} == {b"new"}
    site.wait_until_served_by(0)
    assert {last.get(key) for key in keys[:150]} == {b"new"}
    assert {last.get(key) for key in keys[150:]} == {b"old"}
    wait_until_equal(site)


def test_what_is_on_the_disk_outlives_all_processes_at_once(build: Callable[..., Site]) -> None:
    safe = f'{MIRROR}\n    sync = "yes"\n    max_journal = "64KB"'
    site = build("redis", safe)
    client = site.client()
    keys = [f"k{index}" for index in range(60)]
    for key in [*keys, "last"]:
        client.set(key, "old")
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    for key in keys:
        client.set(key, "new")
    end_at_once(site)
    site.start(safe)
    client = site.client()
    for index in range(4000):  # more than the journal takes
        client.set(f"a key with a rather long name, number {index}", "x")
    site.fleet.wait_log("room.lost")
    client.delete("last")
    end_at_once(site)
    site.revive(0, "freeze")
    site.start(safe)
    client = site.client()
    assert client.mget(keys) == [b"new"] * len(keys)
    site.wait_until_served_by(0)
    assert client.mget(*keys, "last") == [b"new"] * len(keys) + [None]
    wait_until_equal(site)


def end_at_once(site: Site) -> None:
    """All processes of the fleet, as when the machine loses its power."""
    for process in site.fleet.tree():
        process.kill()
    site.fleet.process.wait()


def test_keys_that_everybody_writes_do_not_keep_a_room_away(build: Callable[..., Site]) -> None:
    site = build("memcache", MIRROR, workers=6)
    stopping = Event()

    def write(client: Any) -> None:
        while not stopping.is_set():
            client.set_many({f"hot{number}": "x" for number in random.sample(range(150), 20)})

    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    writers = [Thread(target=write, args=(site.client(),)) for _ in range(12)]
    for writer in writers:
        writer.start()
    try:
        site.kill(0, "freeze")
        site.wait_until_served_by(1)
        site.revive(0, "freeze")
        site.wait_until_served_by(0)
    finally:
        stopping.set()
        for writer in writers:
            writer.join()


def set_one(client: Any, key: str) -> bool:
    """Could it be written?"""
    try:
        client.set(key, "new")
    except redis.ConnectionError:
        return False
    return True


def test_a_server_that_misses_too_much_is_copied_whole(build: Callable[..., Site]) -> None:
    site = build("redis", f'{MIRROR}\n    max_journal = "64KB"')
    client = site.client()
    client.set("gone", "x")
    site.wait_until_served_by(0)
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    client.delete("gone")
    for index in range(4000):
        client.set(f"a key with a rather long name, number {index}", str(index))
    site.fleet.wait_log("room.lost")
    site.revive(0, "freeze")
    site.wait_until_served_by(0)
    assert len(wait_until_equal(site)) == 4000
    assert client.get("gone") is None


def test_it_is_said_why_a_server_does_not_become_equal(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    spares = [site.to(server.port) for server in site.rooms[1]]
    for spare in spares:
        spare.config_set("maxmemory", "1")
    client = site.client()
    for index in range(20):
        client.set(f"k{index}", "x")
    site.fleet.wait_log("room.not_equal")
    told = next(line for line in site.fleet.read_log().splitlines() if "room.not_equal" in line)
    assert "room=second" in told
    assert "a key could not be copied: b\"-OOM" in told.replace("\\", "")
    for spare in spares:
        spare.config_set("maxmemory", "0")
    assert len(wait_until_equal(site)) == 20


def test_a_key_that_would_keep_a_server_busy_is_left_and_all_others_are_copied(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    client = site.client()
    keys = [f"k{index}" for index in range(300)]
    site.kill(1, "freeze")
    client.mset(dict.fromkeys(keys, "new"))
    for part in range(60):
        client.hset("big", mapping={f"field {part} {index}": index for index in range(5000)})
    with writing(site, 1):
        site.revive(1, "freeze")
        site.fleet.wait_log("again_s=2")
    line = next(line for line in site.fleet.read_log().splitlines() if "again_s=2" in line)
    assert f"key={digest(b'big')} keys=1" in line and "timeout.read_ms is 200: raise that" in line, line
    spares = [site.to(server.port) for server in site.rooms[1]]
    assert [spare.get(key) for spare in spares for key in keys].count(b"new") == len(keys)
    assert sum(spare.exists("big") for spare in spares) == 0
    rooms = "    [instance.level.rooms]"
    site.fleet.write(site.config(MIRROR).replace(rooms, f"  timeout = {{ read_ms = 5000 }}\n{rooms}"))
    assert site.fleet.reload().accepted
    site.wait_until_ready(1)
    assert sum(spare.hlen("big") for spare in spares) == 300_000


def test_a_key_that_is_refused_is_tried_ever_more_rarely(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    spares = [site.to(server.port) for server in site.rooms[1]]
    serving = [site.to(server.port) for server in site.rooms[0]]
    for spare in spares:
        spare.config_set("proto-max-bulk-len", 1 << 20)
    client = site.client()
    client.set("long", os.urandom(1_500_000))
    assert client.get("long") is not None
    site.fleet.wait_log("again_s=4")
    dumps = sum(server.info("commandstats").get("cmdstat_dump", {"calls": 0})["calls"] for server in serving)
    assert dumps <= 5, "there were three tries"
    for spare in spares:
        spare.config_set("proto-max-bulk-len", 1 << 29)
    site.wait_until_ready(1)
    assert sum(spare.strlen("long") for spare in spares) == 1_500_000


def test_what_rooms_do_is_among_the_events(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)

    def told() -> list[dict[str, Any]]:
        events = json.loads(site.fleet.http("GET", "/events")[1])["events"]
        return [event for event in events if event["event"].startswith("room.")]

    def wait_told(*names: str) -> None:
        wait_for(lambda: set(names) <= {event["event"] for event in told()}, f"{names} are told", 20)

    client = site.client()
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    for index in range(20):
        client.set(f"k{index}", "x")
    wait_told("room.switched")
    switch = next(event for event in told() if event["event"] == "room.switched")
    assert (switch["level"], switch["fields"]["instance"], switch["fields"]["room"]) == ("warning", "shop", "first")
    assert switch["fields"]["to"] == f"{switch['fields']['node']}@second"
    site.revive(0, "freeze")
    wait_told("room.caught_up", "room.returned")
    site.kill(1, "kill")
    site.revive(1, "kill")
    wait_told("room.lost", "room.copied")
    documented = re.findall(r"^\| (room\.\w+) \|", DOCS.read_text(), re.MULTILINE)
    assert {event["event"] for event in told()} <= set(documented)


def test_everything_is_removed_from_both(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    client = site.client()
    for index in range(50):
        client.set(f"k{index}", "x")
    client.flushall()
    client.set("after", "y")
    assert wait_until_equal(site) == {b"after": b"y"}


def test_what_can_not_be_mirrored_is_refused(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    client = site.client()
    with pytest.raises(redis.ResponseError, match="two rooms"):
        client.pipeline(transaction=True).set("k", "v").execute()
    with pytest.raises(redis.ResponseError, match="two rooms"):
        client.blpop("k", 1)
    assert client.get("k") is None


def test_what_chance_decides_is_made_equal(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    client = site.client()
    client.sadd("set", *range(1000))
    popped = {client.spop("set") for _ in range(300)}
    site.wait_until_ready(1)
    sets = [{member for server in room for member in site.to(server.port).smembers("set")} for room in site.rooms]
    assert sets[0] == sets[1]
    assert sets[0] | popped == {str(number).encode() for number in range(1000)}


def test_a_reload_forgets_nothing(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    with writing(site, 4) as writers:
        site.wait_until_served_by(0)
        for number in range(3):
            site.kill(0, "freeze")
            site.wait_until_served_by(1)
            wait_until_written(writers, 50)
            site.fleet.write(site.config(f"{MIRROR}\n    interval_ms = {90 + number}"))
            assert site.fleet.reload().accepted
            site.wait_until_served_by(1)
            wait_until_written(writers, 50)
            site.revive(0, "freeze")
            site.wait_until_served_by(0)
            wait_until_written(writers, 50)
            site.fleet.write(site.config(f"{MIRROR}\n    interval_ms = {80 + number}"))
            assert site.fleet.reload().accepted
            wait_until_written(writers, 50)
    found = wait_until_equal(site)
    assert found[b"shared:count"] == str(sum(writer.number for writer in writers)).encode()


def test_keys_of_every_size_and_database_are_copied_with_their_time_of_living(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    site.wait_until_served_by(0)
    client = site.client()
    other = site.stack.enter_context(redis.Redis(port=site.port, db=3))
    for index in range(300):
        client.set(f"k{index}", f"{index}" * (40000 if index % 50 == 0 else 1), ex=500 if index % 3 == 0 else None)
        other.rpush(f"l{index}", index, "b")
    site.wait_until_ready(1)
    site.kill(0, "kill")
    site.wait_until_served_by(1)
    site.revive(0, "kill")
    site.wait_until_served_by(0)
    assert sum(site.stat(f"n{index}", "copied") for index in range(2)) >= 600
    for index in range(300):
        assert client.get(f"k{index}") == f"{index}".encode() * (40000 if index % 50 == 0 else 1)
        assert (400 < client.ttl(f"k{index}") <= 500) == (index % 3 == 0)
        assert other.lrange(f"l{index}", 0, -1) == [str(index).encode(), b"b"]
