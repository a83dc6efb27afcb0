"""scripts/verify_rooms: a room dies again and again, killed or frozen; how long does that hurt, and is a write lost?

Clients write in many ways and read back. Prints, for redis and memcached and for both ways of writing, the time from
a death to the last error, the slowest step of a client, and the errors of the returns; exit status 1 when the first is
more than a second, when a return was noticed, or when the rooms differ in the end (with writes = "mirror").
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from hyper_proxy.build import state
from scripts.robustness.room_copy import copy_back
from tests.kit.rooms import Site, Writer, wait_until_equal
from tests.kit.wait import wait_for

WAYS = {"single": 'on_return = "empty"', "mirror": 'writes = "mirror"\n    folder = "rooms"'}
HOWS = ("kill", "freeze")
MOST_S = 1.0


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/verify_rooms", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--deaths", type=int, default=10, help="of each kind and way of writing (default 10)")
    parser.add_argument("--clients", type=int, default=6, help="blocking clients (default 6)")
    parser.add_argument("--keys", type=int, default=0, help="instead: let so many be copied back to a room")
    return parser.parse_args()


class Trial:
    """One kind of servers, one way of writing. `faults` is what went wrong."""

    def __init__(self, stack: ExitStack, folder: Path, kind: str, way: str, clients: int) -> None:
        self.name = f"{kind}, {way}"
        self.way = way
        self.site = Site(stack, folder, kind, WAYS[way])
        self.stopping = Event()
        misses = way == "single"  # the other room is empty
        self.writers = [Writer(self.site.client(), index, self.stopping, misses) for index in range(clients)]
        self.windows: list[float] = []
        self.on_return = 0
        self.faults: list[str] = []

    def go_on(self) -> None:
        """Wait for some more requests."""
        at = sum(writer.steps for writer in self.writers)
        wait_for(lambda: sum(writer.steps for writer in self.writers) > at + 100, "it is written")

    def die(self, how: str) -> None:
        """The first room dies, is replaced, and returns."""
        self.site.wait_until_served_by(0)
        self.site.wait_until_ready(1)
        self.go_on()
        for writer in self.writers:
            writer.failed.clear()
        died = time.monotonic()
        self.site.kill(0, how)
        self.site.wait_until_served_by(1)
        self.go_on()
        ends = [end - died for writer in self.writers for _, end in writer.failed]
        self.windows.append(max(ends, default=0.0))
        for writer in self.writers:
            writer.failed.clear()
        self.site.revive(0, how)
        self.site.wait_until_served_by(0)
        self.go_on()
        self.on_return += sum(len(writer.failed) for writer in self.writers)

    def end(self) -> None:
        """What became of it."""
        self.stopping.set()
        for writer in self.writers:
            writer.thread.join()
        if max(self.windows) > MOST_S:
            self.faults.append(f"{self.name}: errors for {max(self.windows):.3f} s")
        if self.on_return:
            self.faults.append(f"{self.name}: {self.on_return} errors on the return")
        keys = len(wait_until_equal(self.site)) if self.way == "mirror" else 0
        slowest = max(writer.slowest for writer in self.writers)
        steps = sum(writer.steps for writer in self.writers)
        equal = f", {keys} keys equal in both rooms" if keys else ""
        print(
            f"{self.name}: {len(self.windows)} deaths, {steps} steps, last error after {max(self.windows):.3f} s, "
            f"slowest step {slowest:.3f} s, errors on the returns {self.on_return}{equal}",
            flush=True,
        )


def main() -> int:
    """0 when all figures hold."""
    chosen = options()
    print(state())
    if chosen.keys:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            print(copy_back(stack, folder, WAYS["mirror"], chosen.keys, chosen.clients))
        return 0
    faults: list[str] = []
    for kind in ("redis", "memcache"):
        for way in WAYS:
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                trial = Trial(stack, folder, kind, way, chosen.clients)
                try:
                    for turn in range(chosen.deaths):
                        trial.die(HOWS[turn % len(HOWS)])
                finally:
                    trial.stopping.set()
                trial.end()
                faults += trial.faults
    print("\n".join(faults) or "all figures hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
