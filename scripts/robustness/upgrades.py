"""scripts/verify_upgrades: no failed request, however often the program is replaced; every third new one is broken.

Each upgrade also changes the number of workers, once by the file that the new program reads, once by a reload.
Prints what was seen; exit status 1 when a request failed, a broken program took over or descriptors were left over.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from hyper_proxy.build import state
from scripts.robustness.stage import go_on, in_words, stage, verdict
from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.installed import BROKEN, REAL, Installed
from tests.kit.ports import free_port
from tests.kit.reconnecting import reconnecting
from tests.kit.wait import wait_for

KINDS = ("lacks a module", "ends at once", "crashes")
PATIENCE_S = 60.0


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/verify_upgrades", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--upgrades", type=int, default=30, help="every third one of a broken program (default 30)")
    parser.add_argument("--clients", type=int, default=20, help="blocking clients (default 20)")
    return parser.parse_args()


class Trial:
    """A fleet whose program is replaced again and again; `faults` is what went wrong."""

    def __init__(self, folder: Path, nodes: list[str]) -> None:
        self.port = free_port()
        self.servers = ", ".join(f'"{node}:1 n{number}"' for number, node in enumerate(nodes))
        self.program = Installed(folder, REAL)
        self.fleet = Fleet(self.config(2), folder, command=self.program.command)
        self.faults: list[str] = []
        self.fds: dict[int, set[int]] = {}

    def config(self, workers: int) -> str:
        """The file for that many workers."""
        return f"""[proxy]
workers = {workers}
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{self.port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{self.servers}]
"""

    def master(self) -> dict[str, Any]:
        """The part of /stats about the process that serves."""
        found: dict[str, Any] = self.fleet.stats()["master"]
        return found

    def upgrade(self, program: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """That one is installed and asked for: the master before, and the one that serves when it is judged."""
        self.program.install(program)
        before = self.master()
        os.kill(before["pid"], signal.SIGUSR2)
        wait_for(lambda: self.master()["last_upgrade"] != before["last_upgrade"], "a verdict", PATIENCE_S)
        return before, self.master()

    def replace(self, workers: int) -> None:
        """A program that is well takes over, with another number of workers; a reload changes that once more."""
        self.fleet.write(self.config(workers))
        before, after = self.upgrade(REAL)
        old = before["pid"]
        if after["pid"] == old:
            self.faults.append(f"a program that is well: {after['last_upgrade']['error']}")
            return
        wait_for(lambda: ended(old), "the end of the old master", PATIENCE_S)
        self.fleet.write(self.config(workers % 3 + 1))
        if not (verdict := self.fleet.reload()).accepted:
            self.faults.append(f"the reload: {verdict}")
        wait_for(lambda: not self.fleet.stats()["leaving"], "the end of the old workers", PATIENCE_S)
        fds = psutil.Process(self.master()["pid"]).num_fds()
        self.fds.setdefault(workers % 3 + 1, set()).add(fds)

    def fail(self, kind: str) -> None:
        """Nothing comes of a broken one."""
        text, reason = BROKEN[kind]
        before, after = self.upgrade(text)
        if after["pid"] != before["pid"] or reason not in after["last_upgrade"]["error"]:
            self.faults.append(f"a program that {kind}: {after}")


def ended(pid: int) -> bool:
    """Is there no such process any more, or only its status?"""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def main() -> int:
    """0 when no request failed."""
    chosen = options()
    print(state())
    began = time.monotonic()
    with stage() as (folder, nodes):
        trial = Trial(folder, [node.address for node in nodes])
        try:
            with Crowd(chosen.clients, reconnecting(trial.port)) as crowd:
                go_on(crowd, 10 * chosen.clients)
                for turn, kind in zip(range(chosen.upgrades), itertools.cycle(KINDS), strict=False):
                    trial.fail(kind) if turn % 3 == 2 else trial.replace(turn % 4 + 1)
                go_on(crowd, 10 * chosen.clients)
            generation = trial.fleet.stats()["config"]["generation"]
        finally:
            trial.fleet.destroy()
    seconds = round(time.monotonic() - began)
    print(f"{chosen.upgrades} upgrades in {seconds} s, {chosen.clients} clients: generation {generation}")
    print(f"requests: {2 * crowd.done}, failed: {len(crowd.failures)}, upgrades that went wrong: {len(trial.faults)}")
    print("descriptors of the master, by workers:", {count: sorted(fds) for count, fds in sorted(trial.fds.items())})
    leaks = [f"{count} workers: {sorted(fds)}" for count, fds in trial.fds.items() if len(fds) > 1]
    return verdict([*trial.faults, *leaks, *in_words(crowd.failures)])


if __name__ == "__main__":
    sys.exit(main())
