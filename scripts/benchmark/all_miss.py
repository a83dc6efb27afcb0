"""scripts/bench --all-miss: keys that are in no cache yet, read by an application itself and through the proxy.

The application is eight blocking processes with redis-py and PyMySQL. By itself it asks redis, then MySQL, and fills
redis; through the proxy it asks one port, and the proxy does the rest. Counted is the CPU time of the application and
the proxy together; redis-server and mariadbd do the same for both.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from scripts.benchmark.asker import name
from scripts.benchmark.cases import VALUE
from scripts.benchmark.cost import cpu_s
from scripts.benchmark.report import Samples
from tests.kit.fleet import Fleet
from tests.kit.mariadb import MariaDb
from tests.kit.ports import free_port
from tests.kit.servers import Running, flush_redis, redis_server

PROCESSES = 8
KEYS_EACH = {1: 1000, 10: 5000, 100: 10_000}  # that a process asks for in a round, by the keys of a request
BATCH = 1000  # rows stored at a time
COLUMNS = 'key = "k", value = "v"'  # of those that the table has: what the application reads, too
CONFIG = """\
[proxy]
workers = {workers}
[[instance]]
name = "bench"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["{cache}"]
  timeout = {{ connect_ms = 1000, read_ms = 5000, queue_ms = 5000 }}
{below}  timeout = {{ connect_ms = 1000, read_ms = 5000, queue_ms = 5000 }}
"""


@dataclass(slots=True)
class Way:
    """How the application gets its values: where it asks, and the proxy that is charged, 0 for none."""

    name: str
    redis_port: int
    mysql_port: int
    pid: int = 0
    samples: dict[int, Samples] = field(default_factory=dict)


def run_round(way: Way, size: int) -> None:
    """All processes at once, each with keys of its own."""
    count = KEYS_EACH[size]
    numbers = [str(number) for number in (way.redis_port, way.mysql_port)]
    askers = [
        subprocess.Popen(
            [sys.executable, "-m", "scripts.benchmark.asker", *numbers, str(at * count), str(count), str(size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for at in range(PROCESSES)
    ]  # fmt: skip
    connected = [asker.stdout and asker.stdout.readline() for asker in askers]
    if not all(connected):
        raise RuntimeError(f"{way.name}: an application process could not connect")
    before = cpu_s(way.pid) if way.pid else 0.0
    rows = _together(askers)
    if any(asker.returncode for asker in askers):
        raise RuntimeError(f"{way.name}: an application process ended with an error")
    requests = PROCESSES * count / size
    proxy = cpu_s(way.pid) - before if way.pid else 0.0
    samples = way.samples.setdefault(size, Samples())
    samples.cpu_us.append((sum(row[2] for row in rows) + proxy) * 1e6 / requests)
    samples.rate.append(requests / (max(row[1] for row in rows) - min(row[0] for row in rows)))


def _together(askers: list[subprocess.Popen[str]]) -> list[list[float]]:
    """Let them begin; what each has printed at its end."""
    for asker in askers:
        if asker.stdin:
            asker.stdin.write("\n")
            asker.stdin.flush()
    return [[float(word) for word in asker.communicate()[0].split()] for asker in askers]


def store(database: MariaDb) -> None:
    """A row for every key."""
    database.make_table()
    with database.connect() as connection, connection.cursor() as cursor:
        for first in range(0, PROCESSES * max(KEYS_EACH.values()), BATCH):
            rows = [(name(number), VALUE) for number in range(first, first + BATCH)]
            cursor.executemany("INSERT INTO kv (k, v) VALUES (%s, %s)", rows)


def start(stack: ExitStack, folder: Path) -> tuple[Running, list[Way]]:
    """The cache that all share, and the ways."""
    cache, database = stack.enter_context(redis_server()), stack.enter_context(MariaDb())
    store(database)
    ways = [Way("application", cache.port, database.port)]
    for workers in (1, 2):
        port = free_port()
        config = CONFIG.format(workers=workers, port=port, cache=cache.address, below=database.level(COLUMNS))
        fleet = stack.enter_context(Fleet(config, folder))
        ways.append(Way(f"{workers} worker{'s' * (workers > 1)}", port, 0, fleet.process.pid))
    return cache, ways


def measure(folder: Path, rounds: int) -> str:
    """The table."""
    with ExitStack() as stack:
        cache, ways = start(stack, folder)
        for number in range(rounds):
            for size in KEYS_EACH:
                for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                    flush_redis(cache)
                    run_round(way, size)
        return table(ways)


def table(ways: list[Way]) -> str:
    """A row for each size: CPU time of application and proxy per request, and requests per second."""
    head = [f"{way.name} µs" for way in ways] + [f"{way.name} req/s" for way in ways]
    lines = [f"| keys | {' | '.join(head)} |", "|---|" + "---:|" * len(head)]
    for size in KEYS_EACH:
        cells = [f"{median(way.samples[size].cpu_us):,.0f}" for way in ways]
        cells += [f"{median(way.samples[size].rate):,.0f}" for way in ways]
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines)
