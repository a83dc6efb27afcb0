"""scripts/verify_soak: a fleet under load for a long time, with one misfortune after the other; does anything grow?

Clients verify every reply. A lost connection is allowed where a worker was killed, a wrong reply never. Memory,
descriptors, threads and greenlets of the master and of the worker that is never killed are measured all the while; exit
status 1 when a reply was wrong, a reload had the wrong verdict or something has grown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hyper_proxy.build import state
from scripts.robustness.stage import go_on, in_words, stage, verdict
from tests.front.redis.conftest import Proxy
from tests.kit.clients import Crowd
from tests.kit.wait import wait_for

CLIENTS = 30
VALUE_BYTES = (10, 200, 5000, 60_000)
BIG_BYTES = 8_000_000
LEVEL = "timeout = { read_ms = 20000, queue_ms = 20000 }"  # the machine may be busy with other things
LOG = "[log]\naccess_sample = 0.05\n"  # so that the thread of the log has something to write all the while
RECONNECTS = 0.01  # of a client's steps, so that those who have lost their worker do not stay with the other one
PAUSE_S = 2.0  # between two misfortunes
GROWTH = 0.10  # of the median of the second quarter to that of the last ...
SLACK = {"rss_mb": 4.0, "fds": 8, "threads": 1, "clients": 5, "greenlets": 5}  # ... beside what is too little to tell


class WrongReply(Exception):
    """A client has read what it has not written."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process used at one moment."""

    rss_mb: float
    fds: int
    threads: int
    clients: int
    greenlets: int  # besides those of clients


def client_of(port: int) -> Callable[[int], Callable[[], None]]:
    """A client that writes and reads its own keys in pipelines and alone; it connects again when it must."""

    def make_step(number: int) -> Callable[[], None]:
        client = redis.Redis(port=port, socket_timeout=30, retry=Retry(NoBackoff(), 0))
        dice = random.Random(number)

        def step() -> None:
            if dice.random() < RECONNECTS:
                client.close()
            keys = [f"{number}:{index}" for index in range(dice.choice((1, 8, 60)))]
            values = {key: (f"value of {key} " * dice.choice(VALUE_BYTES))[:60_000] for key in keys}
            client.mset(values)
            pipeline = client.pipeline(transaction=False)
            for key in keys:
                pipeline.get(key)
            if pipeline.execute() != [value.encode() for value in values.values()]:
                raise WrongReply(keys)

        return step

    return make_step


class Misfortunes:
    """What happens to the fleet, in turn."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.happened: Counter[str] = Counter()
        self.faults: list[str] = []
        self.kills = 0
        self.rows = itertools.cycle((
            self.reload, self.hang_up, self.slow_reader, self.probes, self.deep_pipeline,
            self.kill_worker, self.ask, self.kill_sidecar, self.silent_reader, self.half_request,
        ))  # fmt: skip
        self.files = itertools.count()
        with proxy.client() as client:
            client.set("big", b"x" * BIG_BYTES)

    def turn(self) -> None:
        """The next one."""
        row = next(self.rows)
        self.happened[row.__name__] += 1
        row()

    def reload(self) -> None:
        """One good file, one broken."""
        for turn in itertools.islice(self.files, 2):
            broken = self.proxy.config.replace('"redis"', '"rediss"')
            good = f"{self.proxy.config}\n  connections = {1 + turn // 2 % 3}\n"
            self.proxy.fleet.write(broken if turn % 2 else good)
            verdict = self.proxy.fleet.reload()
            if verdict.accepted is bool(turn % 2):
                self.faults.append(f"reload {turn}: {verdict}")

    def hang_up(self) -> None:
        """Ten HUPs at once."""
        self.proxy.fleet.write(self.proxy.config)
        for _ in range(10):
            self.proxy.fleet.hup()

    def kill_worker(self) -> None:
        """The second one; the first is the one that is measured."""
        pid = self.proxy.fleet.kill_worker(1)
        self.kills += 1
        wait_for(lambda: self._ready(1) and self.proxy.fleet.worker_pids()[1] != pid, "it is back", 60)

    def _ready(self, slot: int) -> bool:
        rows = self.proxy.fleet.stats()["workers"]
        return any(row["slot"] == slot and row["state"] == "ready" for row in rows)

    def kill_sidecar(self) -> None:
        """Nobody but who asks it may notice."""
        for process in self.proxy.fleet.tree():
            if "sidecar" in " ".join(process.cmdline()):
                process.kill()
        wait_for(self.proxy.fleet.is_ready, "the sidecar is back", 60)

    def ask(self) -> None:
        """What monitoring asks for."""
        for path in ("/stats", "/metrics", "/", "/health/ready"):
            status, body = self.proxy.fleet.http("GET", path)
            if status != 200:
                self.faults.append(f"GET {path}: {status} {body[:200]!r}")

    def probes(self) -> None:
        """Connect and close."""
        for _ in range(200):
            socket.create_connection(("127.0.0.1", self.proxy.port), 10).close()

    def slow_reader(self) -> None:
        """Reads a large reply in small pieces, then leaves."""
        with self._asked(b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n" * 4) as sock:
            for _ in range(200):
                sock.recv(8192)

    def silent_reader(self) -> None:
        """Asks, reads nothing, leaves."""
        self._asked(b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n" * 20).close()

    def deep_pipeline(self) -> None:
        """A hundred thousand requests in one go, read to the end."""
        count = 100_000
        with self._asked(b"") as sock, sock.makefile("rb") as file:
            sock.settimeout(60)
            for _ in range(10):
                sock.sendall(b"*1\r\n$4\r\nPING\r\n" * (count // 10))
                for _ in range(count // 10):
                    if file.readline() != b"+PONG\r\n":
                        self.faults.append("deep pipeline: a wrong reply")
                        return

    def half_request(self) -> None:
        """Begins to send a megabyte and leaves."""
        self._asked(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + b"x" * 500_000).close()

    def _asked(self, request: bytes) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.proxy.port), 30)
        sock.sendall(request)
        return sock


def measure(proxy: Proxy) -> dict[str, Sample]:
    """The processes that live all the while."""
    found = {"master": sample(proxy.fleet.process.pid)}
    with suppress(OSError, AssertionError):
        for row in proxy.fleet.stats()["workers"]:
            if row["slot"] == 0:
                all_greenlets = greenlets(proxy)
                found["worker 0"] = sample(row["pid"], row["connections"], all_greenlets - row["connections"])
    return found


def greenlets(proxy: Proxy) -> int:
    """How many worker 0 has, by the dump of their stacks: equal ones stand there once, with their number."""
    (row,) = json.loads(proxy.fleet.http("GET", "/stack?worker=0")[1])["stacks"]
    return sum(int(number) for number in re.findall(r"^(\d+) x$", row["text"], re.MULTILINE))


def sample(pid: int, clients: int = 0, others: int = 0) -> Sample:
    """What a process uses now."""
    process = psutil.Process(pid)
    return Sample(process.memory_info().rss / 2**20, process.num_fds(), process.num_threads(), clients, others)


def grown(history: list[Sample]) -> Iterator[str]:
    """What the last quarter has more of than the second."""
    quarter = len(history) // 4
    for name, slack in SLACK.items():
        before = statistics.median(getattr(row, name) for row in history[quarter : 2 * quarter])
        after = statistics.median(getattr(row, name) for row in history[-quarter:])
        if after > before * (1 + GROWTH) + slack:
            yield f"{name} grew from {before:g} to {after:g}"


def show(name: str, history: list[Sample]) -> str:
    """First, median and last of everything."""
    parts = []
    for field in SLACK:
        values = [getattr(row, field) for row in history]
        shown = (values[0], statistics.median(values), max(values), values[-1])
        parts.append(f"{field} {' / '.join(f'{value:.0f}' for value in shown)}")
    return f"{name}: first / median / most / last: {', '.join(parts)}"


def run(proxy: Proxy, minutes: float) -> list[str]:
    """Lives through it; prints what was seen, returns the faults."""
    histories: dict[str, list[Sample]] = {}
    misfortunes = Misfortunes(proxy)
    pid = proxy.fleet.worker_pids()[0]
    end = time.monotonic() + minutes * 60
    with Crowd(CLIENTS, client_of(proxy.port)) as crowd:
        go_on(crowd, 10 * CLIENTS)
        while time.monotonic() < end:
            misfortunes.turn()
            go_on(crowd, CLIENTS)
            for name, found in measure(proxy).items():
                histories.setdefault(name, []).append(found)
            time.sleep(PAUSE_S)
    lost = [fault for fault in crowd.failures if isinstance(fault, redis.ConnectionError)]
    wrong = [fault for fault in crowd.failures if fault not in lost]
    faults = [*misfortunes.faults, *in_words(wrong)]
    if len(lost) > CLIENTS * misfortunes.kills:
        faults.append(f"{len(lost)} connections were lost by {misfortunes.kills} kills")
    if proxy.fleet.worker_pids()[0] != pid:
        faults.append("worker 0 was replaced")
    print(f"{minutes:g} minutes, {CLIENTS} clients: {crowd.done} verified steps, {len(lost)} lost connections")
    print("misfortunes: " + ", ".join(f"{name} {number}" for name, number in sorted(misfortunes.happened.items())))
    for name, history in histories.items():
        print(show(name, history))
        faults += [f"{name}: {what}" for what in grown(history)]
    return faults


def main() -> int:
    """0 when all was as it must be."""
    parser = argparse.ArgumentParser(prog="scripts/verify_soak", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--minutes", type=float, default=20, help="how long (default 20)")
    minutes = parser.parse_args().minutes
    print(state())
    with stage() as (folder, nodes):
        proxy = Proxy(folder, [node.address for node in nodes], level=LEVEL, head=LOG)
        with proxy.fleet:  # shows its log when something is raised
            faults = run(proxy, minutes)
    print(f"faults: {len(faults)}")
    return verdict(faults)


if __name__ == "__main__":
    sys.exit(main())
