"""scripts/fuzz: every case runs in four ways (compiled and plain, in one piece and in many); all must find the same.

Blocks of cases run in processes of their own, so that a crash or a hang shows, with the block's numbers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hyper_proxy.build import state
from tests.kit.fuzz import TARGETS, events_of, run

BLOCK = 25_000
BLOCK_S = 300.0  # a block takes some seconds: this is a hang


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one block."""

    target: str
    first: int
    count: int
    fault: str  # empty when all went well
    found: dict[str, int]


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--cases", type=int, default=1_000_000, help="of each target (default: a million)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only this parser; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--block", metavar="TARGET", choices=list(TARGETS), help=argparse.SUPPRESS)
    return parser.parse_args()


def run_block(target: str, first: int, count: int) -> Outcome:
    """In a process of its own."""
    command = [sys.executable, "-m", "scripts.robustness.fuzz", "--block", target]
    command += ["--first", str(first), "--cases", str(count)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BLOCK_S, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(target, first, count, f"hangs for more than {BLOCK_S} s", {})
    if done.returncode != 0:
        return Outcome(target, first, count, f"exit status {done.returncode}\n{done.stderr[-4000:]}", {})
    pairs = [line.split() for line in done.stdout.splitlines()]
    return Outcome(target, first, count, "", {kind: int(number) for kind, number in pairs})


def main() -> int:
    """All blocks; 0 when no case failed."""
    chosen = options()
    if chosen.block:
        for kind, number in run(chosen.block, chosen.first, chosen.cases).items():
            print(kind, number)
        return 0
    print(state())
    faults = 0
    for target in chosen.target or TARGETS:
        began = time.monotonic()
        end = chosen.first + chosen.cases
        blocks = [(target, first, min(BLOCK, end - first)) for first in range(chosen.first, end, BLOCK)]
        found: dict[str, int] = {}
        with ThreadPoolExecutor(chosen.jobs) as pool:
            for outcome in pool.map(lambda block: run_block(*block), blocks):
                if outcome.fault:
                    faults += 1
                    print(f"{target}: cases from {outcome.first}: {outcome.fault}", flush=True)
                for kind, number in outcome.found.items():
                    found[kind] = found.get(kind, 0) + number
        seconds = round(time.monotonic() - began)
        ways = f"{chosen.cases} cases, each compiled and plain, whole and cut"
        print(f"{target}: {ways}: {events_of(found)}; {seconds} s", flush=True)
    print(f"blocks that failed: {faults}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
