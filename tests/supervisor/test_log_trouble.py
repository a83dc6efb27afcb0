"""A log that can't be written: a disk that is full, a reader that sleeps. Nobody waits for it, and it is told."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Client, Connect, StartStandIn
from tests.supervisor.standin import LINES
from workers.log_writer import MAX_BYTES

# What a request may take on a machine that does other things as well; one that waits for the log takes for ever.
PATIENCE_S = 10.0
LINE_BYTES = 200  # and a little more, of the lines of the stand-in

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = {drain}
[log]
file = "{log}"
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["a.db"]
"""


def fill(path: Path) -> None:
    """Writes until nothing fits any more."""
    writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b"\n" * size)
        except BlockingIOError:
            continue
    os.close(writer)


def read_all(reader: int) -> bytes:
    """What is in a pipe now."""
    read = b""
    try:
        while piece := os.read(reader, 65536):
            read += piece
    except BlockingIOError:
        pass
    return read


def works(fleet: Fleet, port: int) -> None:
    """Requests, a worker's death, and reloads, all of which are logged: nothing of it waits."""
    with redis.Redis(port=port, protocol=2, socket_timeout=PATIENCE_S) as client:
        for number in range(50):
            with redis.Redis(port=port, protocol=2, socket_timeout=PATIENCE_S) as other:
                other.set(f"k{number}", number)
            started = time.monotonic()
            assert client.get(f"k{number}") == b"%d" % number
            assert time.monotonic() - started < PATIENCE_S
    pid = fleet.kill_worker(0)
    wait_for(lambda: fleet.stats()["workers"][0]["state"] == "ready" and fleet.worker_pids() != [pid], "its successor")
    with redis.Redis(port=port, protocol=2, socket_timeout=PATIENCE_S) as client:
        assert client.get("k7") == b"7"
    fleet.write(fleet.file.read_text().replace("drain_timeout_s = 5", "drain_timeout_s = 6"))
    assert fleet.reload().accepted


def test_a_full_disk(tmp_path: Path) -> None:
    port = free_port()
    with Fleet(CONFIG.format(log="/dev/full", port=port, drain=5), tmp_path) as fleet:
        works(fleet, port)
        assert fleet.stats()["master"]["log_lost"] > 0
        assert fleet.stop() == 0


def test_what_a_full_disk_refuses_is_counted(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1, extra='\n[log]\nfile = "/dev/full"\n')
    client = connect(fleet)
    client.send("log 1")
    assert client.receive()[0] == "0"
    wait_for(lambda: fleet.stats()["workers"][0]["log_lost"] == LINES, "they are counted")
    assert f'hyper_proxy_worker_log_lost_total{{slot="0"}} {LINES}.0\n' in fleet.http("GET", "/metrics")[1].decode()


def test_a_reader_that_sleeps(tmp_path: Path, fifo: tuple[Path, int]) -> None:
    path, reader = fifo
    port = free_port()
    with Fleet(CONFIG.format(log=path, port=port, drain=5), tmp_path) as fleet:
        read_all(reader)
        fill(path)
        works(fleet, port)
        lost = fleet.stats()["master"]["log_lost"]
        assert lost > 0
        read_all(reader)
        fleet.hup()
        heard = b""

        def told() -> bool:
            nonlocal heard
            heard += read_all(reader)
            return f"error log.lost lines={lost}".encode() in heard

        wait_for(told, "the master tells what it has lost")
        assert fleet.stop() == 0


def test_what_a_worker_cannot_keep_is_counted_and_told(
    start_standin: StartStandIn, connect: Connect, fifo: tuple[Path, int]
) -> None:
    path, reader = fifo
    fleet = start_standin(workers=1, extra=f'\n[log]\nfile = "{path}"\nformat = "json"\n')
    read_all(reader)
    fill(path)
    client: Client = connect(fleet)
    # Twice what waits: what is queued, and as much again that a thread has in hand.
    for number in range(2 * MAX_BYTES // (LINES * LINE_BYTES)):
        started = time.monotonic()
        client.send(f"log {number}")
        assert client.receive()[0] == "0"
        assert time.monotonic() - started < PATIENCE_S
    lost = fleet.stats()["workers"][0]["log_lost"]
    assert lost > 0
    rows: list[bytes] = []

    def told() -> int:
        rows.extend(read_all(reader).split(b"\n"))
        return sum(json.loads(row)["lines"] for row in rows if b'"event": "log.lost"' in row and b'"slot": 0' in row)

    # 32 MB come through a pipe of 64 KB, one pipe at each look.
    assert wait_for(told, "the worker tells what it has lost", 40) == lost
