"""scripts/bench: measure, print a table."""

from __future__ import annotations

import argparse
import json
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

from hyper_proxy.build import state
from scripts.benchmark.all_miss import measure as measure_misses
from scripts.benchmark.cases import CASES, Case
from scripts.benchmark.cost import cpu_s, rss_bytes
from scripts.benchmark.drivers import drive
from scripts.benchmark.report import Results, Samples, machine, summary, table, variants
from scripts.benchmark.sides import DIRECT, Arena, Side, fill, misses

IDLE_CLIENTS = 2000
SETTLE_S = 0.3  # what is still done after the last answer belongs to the run: a log is written in pieces


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=(__doc__ or "").partition(": ")[2])
    names = [case.name for case in CASES]
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds; the median counts (default 5)")
    parser.add_argument("--case", action="append", choices=names, help="only this case; may be repeated")
    parser.add_argument("--requests", type=float, default=1.0, metavar="FACTOR", help="times the requests of each run")
    parser.add_argument("--workers", type=int, action="append", help="number of workers of a fleet (default: 1 and 2)")
    parser.add_argument("--access-sample", type=float, action="append", default=[], metavar="SHARE",
                        help="one more fleet, with one worker that logs this share of its requests")  # fmt: skip
    parser.add_argument("--levels", action="store_true", help="one more fleet: the servers as caches above a file")
    parser.add_argument("--all-miss", action="store_true", help="something else: keys that only MySQL has")
    parser.add_argument("--quick", action="store_true", help="two rounds of a fifth of the requests: a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round's numbers there")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.requests = 2, 0.2
    chosen.cases = [case for case in CASES if not chosen.case or case.name in chosen.case]
    return chosen


def measure(case: Case, side: Side, requests: int, samples: Samples) -> None:
    """One run: CPU time of the side's process tree before and after, by the number of requests."""
    pid = side.pids[case.protocol]
    before = cpu_s(pid)
    rate = drive(case, side.ports[case.protocol], requests)
    time.sleep(SETTLE_S)
    samples.cpu_us.append((cpu_s(pid) - before) * 1e6 / requests)
    samples.rate.append(rate)
    side.empty_log()


def applies(case: Case, side: Side) -> bool:
    """A single memcached does not hold all keys, and the memcache load generator wants every one."""
    return not (side.name == DIRECT and case.protocol == "memcache")


def idle_client_bytes(side: Side, protocol: str) -> float:
    """Growth of the tree's memory for each client that has asked once and then stays connected."""
    request = b"*1\r\n$4\r\nPING\r\n" if protocol == "redis" else b"version\r\n"
    before = rss_bytes(side.pids[protocol])
    clients = []
    for _ in range(IDLE_CLIENTS):
        sock = socket.create_connection(("127.0.0.1", side.ports[protocol]), timeout=30)
        sock.sendall(request)
        sock.recv(100)
        clients.append(sock)
    grown = rss_bytes(side.pids[protocol]) - before
    for sock in clients:
        sock.close()
    return grown / IDLE_CLIENTS


def prepare(arena: Arena, chosen: argparse.Namespace, protocols: set[str]) -> list[Side]:
    """Start all sides, store the keys through twemproxy, and find them through the others."""
    reference = arena.twemproxy()
    fleets = [*map(arena.fleet, chosen.workers or [1, 2]), *(arena.fleet(1, share) for share in chosen.access_sample)]
    if chosen.levels:
        fleets.append(arena.leveled())
    for protocol in sorted(protocols):
        fill(reference, protocol)
        for side in fleets:
            if lost := list(misses(side, protocol)):
                raise RuntimeError(f"{side.name} places {len(lost)} of 100 {protocol} keys elsewhere: {lost[0]}")
    return [arena.direct(), reference, *fleets]


def say(number: int, case: Case, side: Side, samples: Samples) -> None:
    """Progress, on standard error."""
    measured = f"{samples.cpu_us[-1]:8.2f} µs {samples.rate[-1]:10,.0f}/s"
    print(f"{number + 1} {case.name:17} {side.name:10} {measured}", file=sys.stderr, flush=True)


def main() -> int:
    """Rounds of cases of sides; the first side of a case is another one in each round."""
    chosen = options()
    if chosen.all_miss:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{machine()}; {state()}; medians of {chosen.rounds} alternating rounds")
            print("µs: CPU time of application and proxy per request\n")
            print(measure_misses(Path(folder), chosen.rounds))
        return 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    results: Results = {}
    with tempfile.TemporaryDirectory() as folder, Arena(Path(folder)) as arena:
        protocols = {case.protocol for case in chosen.cases}
        sides = prepare(arena, chosen, protocols)
        for number in range(chosen.rounds):
            for case in chosen.cases:
                for side in sides[number % len(sides) :] + sides[: number % len(sides)]:
                    if applies(case, side):
                        samples = results.setdefault((case.name, side.name), Samples())
                        measure(case, side, max(1000, int(case.requests * chosen.requests)), samples)
                        say(number, case, side, samples)
        protocol = chosen.cases[0].protocol
        idle = {side.name: idle_client_bytes(side, protocol) for side in sides if side.name != DIRECT}
    print(f"{machine()}; {state()}; medians of {chosen.rounds} alternating rounds")
    print("µs: CPU time of the whole process tree per request\n")
    print(table(results, chosen.cases))
    if chosen.access_sample or chosen.levels:
        print(f"\nCPU time by that of the plain fleet with one worker:\n{variants(results, chosen.cases)}")
    print("\nmemory per idle client: " + ", ".join(f"{name} {grown / 1024:.1f} KB" for name, grown in idle.items()))
    if chosen.json:
        record = {"machine": machine(), "state": state(), "results": summary(results), "idle_client_bytes": idle}
        chosen.json.write_text(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
