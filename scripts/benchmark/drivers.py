"""Puts load on a port; the same programs for every side."""

from __future__ import annotations

import re
import subprocess
import sys

from scripts.benchmark.cases import CLIENTS, KEYSPACE, VALUE, Case

RATE = re.compile(r"([\d.]+) requests per second")


def drive(case: Case, port: int, requests: int) -> float:
    """Send so many requests from CLIENTS connections; the result is requests per second."""
    return DRIVERS[case.protocol](case, port, requests)


def drive_redis(case: Case, port: int, requests: int) -> float:
    """With redis-benchmark."""
    command = ["redis-benchmark", "-p", str(port), "-c", str(CLIENTS), "-n", str(requests), "-r", str(KEYSPACE)]
    output = run([*command, "-P", str(case.pipeline), "-q", *case.command])
    rates = RATE.findall(output)
    if not rates or "rror from server" in output:
        raise RuntimeError(f"redis-benchmark on port {port}, {case.name}: {output[-500:]}")
    return float(rates[-1])


def drive_memcache(case: Case, port: int, requests: int) -> float:
    """With load.py, in a process of its own."""
    numbers = map(str, (port, CLIENTS, requests, case.keys, KEYSPACE, len(VALUE)))
    return float(run([sys.executable, "-c", "from scripts.benchmark.load import main; main()", *numbers]))


def run(command: list[str]) -> str:
    """Its output; RuntimeError with what it said when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}{done.stdout[-500:]}")
    return done.stdout


DRIVERS = {"redis": drive_redis, "memcache": drive_memcache}
