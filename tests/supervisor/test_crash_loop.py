"""Workers that die again and again."""

from __future__ import annotations

import re
import subprocess
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psutil

from tests.kit.fleet import COMMAND, ROOT
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import StandInFleet, StartStandIn, ask, ctl
from tests.supervisor.test_restart import worker

DEATHS = 5


def doom(fleet: StandInFleet, slot: int) -> Path:
    """From now on every worker of the slot fails at its birth, until the file is removed."""
    file = Path(f"{fleet.file}.fail-{slot}")
    file.touch()
    fleet.kill_worker(slot)
    return file


def times(fleet: StandInFleet, event: str) -> list[float]:
    """When that was logged."""
    return [
        datetime.fromisoformat(line.split()[0]).timestamp()
        for line in fleet.read_log().splitlines()
        if re.search(rf" {event}( |$)", line)
    ]


def test_quick_deaths_come_slower_and_slower_until_the_slot_is_given_up_for_a_while(
    start_standin: StartStandIn,
) -> None:
    fleet = start_standin(workers=2)
    doom(fleet, 1)
    fleet.wait_log("error worker.quarantined slot=1 deaths=5 seconds=30")
    ends = times(fleet, "worker.ended slot=1")
    pauses = [after - before for before, after in pairwise(ends)]
    assert len(ends) == DEATHS
    assert all(pause >= 0.1 * 2**number for number, pause in enumerate(pauses))
    fleet.wait_log("slot.adopted slot=1")
    assert {ask(fleet.port)[0] for _ in range(40)} == {"0"}
    row = worker(fleet, 1)
    assert (row["state"], row["pid"], row["adopted_by"], row["restarts"]) == ("quarantined", 0, 0, DEATHS - 1)
    assert (row["exit"]["code"], row["exit"]["signal"]) == (1, "")
    assert row["exit"]["error"] == f"{fleet.file}: told to fail at boot"
    assert fleet.http("GET", "/health/ready")[0] == 200
    assert worker(fleet, 0)["restarts"] == 0
    words = ["top", "--admin", f"127.0.0.1:{fleet.admin_port}", "--once"]
    shown = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True).stdout
    assert "1 of 2 workers ready" in shown
    assert re.search(r"^ *1 +- +\d+ +quarantined", shown, re.MULTILINE), "it has no process"


def test_without_a_healthy_worker_readiness_is_red_and_the_master_idle(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    master = psutil.Process(fleet.process.pid)
    file = doom(fleet, 0)
    fleet.wait_log("worker.quarantined")
    assert fleet.http("GET", "/health/ready")[0] == 503
    assert fleet.log_contains("error fleet.down")
    before, since = master.cpu_times(), time.monotonic()
    wait_for(lambda: time.monotonic() > since + 1, "a second goes by")
    after = master.cpu_times()
    assert after.user + after.system - before.user - before.system <= 0.05
    assert len(times(fleet, "worker.ended")) == DEATHS
    file.unlink()
    fleet.hup()  # who has mended it need not wait
    wait_for(lambda: fleet.http("GET", "/health/ready")[0] == 200, "readiness is green")
    fleet.wait_log("fleet.recovered")
    assert ask(fleet.port)[0] == "0"


def test_a_slot_is_adopted_again_when_its_neighbour_dies_or_a_reload_adds_an_address(
    start_standin: StartStandIn,
) -> None:
    fleet = start_standin(workers=3)
    doom(fleet, 2)
    fleet.wait_log("worker.quarantined slot=2")
    wait_for(lambda: worker(fleet, 2)["adopted_by"] == 0, "worker 0 accepts for it")
    fleet.kill_worker(0)
    wait_for(lambda: worker(fleet, 2)["adopted_by"] == 1, "worker 1 accepts for it")
    wait_for(lambda: worker(fleet, 0)["state"] == "ready", "worker 0 is back")
    assert {ask(fleet.port)[0] for _ in range(60)} == {"0", "1"}
    port = free_port()
    fleet.change(workers=3, listen=(f"127.0.0.1:{port}",))
    assert fleet.reload().accepted
    wait_for(lambda: len(times(fleet, "worker.quarantined slot=2")) == 2, "it has tried and failed once more")
    wait_for(lambda: worker(fleet, 2)["adopted_by"] is not None, "somebody accepts for it, with the new address")
    assert {ask(port)[0] for _ in range(60)} == {"0", "1"}


def test_ctl_shows_how_workers_end_and_who_stands_in(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    doom(fleet, 1)
    fleet.wait_log("worker.quarantined slot=1")
    done = ctl(fleet, "show", "workers")
    (line,) = [line for line in done.stdout.splitlines() if "quarantined, 0 accepts" in line]
    assert re.search(rf"exit code 1: {fleet.file}: told to fail at boot \(lived \d+s\)$", line)
