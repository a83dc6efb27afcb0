"""USR2 under load: whatever the new program is, no request fails that need not."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil

from tests.fleet.conftest import StartRedisFleet
from tests.fleet.test_under_load import verified
from tests.kit.clients import Crowd
from tests.kit.fleet import Fleet
from tests.kit.installed import BROKEN, REAL, Installed
from tests.kit.reconnecting import reconnecting
from tests.kit.wait import wait_for

CLIENTS = 12
UPGRADES = 2


def master(fleet: Fleet) -> dict[str, Any]:
    """The part of /stats about the process that serves."""
    state: dict[str, Any] = fleet.stats()["master"]
    return state


def requests(fleet: Fleet) -> int:
    """All that were ever counted."""
    return sum(fleet.stats()["instances"].get("user", {"requests": {}})["requests"].values())


def test_upgrades_fail_no_request_and_counters_go_on(start_redis_fleet: StartRedisFleet, tmp_path: Path) -> None:
    program = Installed(tmp_path, REAL)
    started = start_redis_fleet(workers=2, drain=1, command=program.command)
    fleet, counted = started.fleet, [0]
    with Crowd(CLIENTS, reconnecting(started.port)) as crowd:
        wait_for(lambda: crowd.done > 5 * CLIENTS, "all clients are at work")
        for _ in range(UPGRADES):
            pid = master(fleet)["pid"]
            os.kill(pid, signal.SIGUSR2)
            while master(fleet)["pid"] == pid:
                counted.append(requests(fleet))
            after = crowd.done
            wait_for(lambda after=after: crowd.done > after + 5 * CLIENTS, "they still are")  # type: ignore[misc]
            counted.append(requests(fleet))
            wait_for(lambda pid=pid: not psutil.pid_exists(pid) or over(pid), "the old master has ended")  # type: ignore[misc]
            counted.append(requests(fleet))
    assert crowd.failures == []
    assert counted == sorted(counted)
    assert requests(fleet) >= 2 * crowd.done
    assert fleet.stats()["config"]["generation"] == 1 + UPGRADES


def over(pid: int) -> bool:
    """Has it ended, and is only its status left?"""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_broken_new_programs_are_not_noticed_by_anybody(start_redis_fleet: StartRedisFleet, tmp_path: Path) -> None:
    program = Installed(tmp_path, REAL)
    started = start_redis_fleet(workers=2, drain=1, command=program.command)
    fleet = started.fleet
    with Crowd(CLIENTS, verified(started.port)) as crowd:
        wait_for(lambda: crowd.done > 5 * CLIENTS, "all clients are at work")
        before = master(fleet)
        for kind in ("lacks a module", "ends at once", "crashes"):
            program.install(BROKEN[kind][0])
            last = master(fleet)["last_upgrade"]
            fleet.send_signal(signal.SIGUSR2)
            wait_for(lambda last=last: master(fleet)["last_upgrade"] != last, "a verdict")  # type: ignore[misc]
            assert BROKEN[kind][1] in master(fleet)["last_upgrade"]["error"]
        after = crowd.done
        wait_for(lambda: crowd.done > after + 5 * CLIENTS, "they still are")
    assert crowd.failures == []
    assert master(fleet)["pid"] == before["pid"]
    assert fleet.stats()["config"]["generation"] == 1
