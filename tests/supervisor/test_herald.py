"""What a fleet tells its service manager, from the start to the end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from tests.kit.manager import Manager, Report
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import StandInFleet, ask, config_text

Start = Callable[..., StandInFleet]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """The one that starts the fleets of this test."""
    manager = Manager(str(tmp_path / "notify"))
    yield manager
    manager.close()


@pytest.fixture
def start(tmp_path: Path, manager: Manager) -> Iterator[Start]:
    """`start(workers=1, ...)`: a fleet whose start is not waited for."""
    fleets: list[StandInFleet] = []

    def begin(environment: dict[str, str] | None = None, **settings: object) -> StandInFleet:
        port = free_port()
        env = {"NOTIFY_SOCKET": manager.address, **(environment or {})}
        text = config_text(**{"port": port, **settings})  # type: ignore[arg-type]
        fleets.append(StandInFleet(tmp_path, port, text, ready=False, env=env))
        return fleets[-1]

    yield begin
    for fleet in fleets:
        fleet.stop()


def news(reports: list[Report]) -> list[list[str]]:
    """What is more than a status, with the moments of the clock left out."""
    lines = [[line for line in report.news if not line.startswith("MONOTONIC_USEC=")] for report in reports]
    return [one for one in lines if one]


def test_the_whole_life_message_by_message_and_from_the_master_alone(start: Start, manager: Manager) -> None:
    fleet = start(workers=2, drain=5, instance="slow-boot")  # or they could be ready before the first look at them
    heard = manager.until("READY=1")
    assert ask(fleet.port)[3] == "slow-boot"
    assert heard[0].status.startswith("starting: ")
    assert heard[-1].status == "serving: 2 of 2 workers ready, generation 1"

    before = time.monotonic_ns() // 1000
    fleet.change(workers=2, drain=7, instance="slow-boot")
    fleet.hup()
    heard += manager.until("RELOADING=1")
    stamp = heard[-1].lines[1]
    assert before <= int(stamp.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    heard += manager.until("READY=1")
    assert heard[-1].status == "serving: 2 of 2 workers ready, generation 2"
    assert fleet.log_contains("reload.done")

    assert fleet.stop() == 0
    heard += manager.rest()
    assert news(heard) == [["READY=1"], ["RELOADING=1"], ["READY=1"], ["STOPPING=1", "EXTEND_TIMEOUT_USEC=12500000"]]
    assert {report.pid for report in heard} == {fleet.process.pid}


def test_ready_is_said_only_when_the_workers_listen(start: Start, manager: Manager) -> None:
    fleet = start(workers=1, instance="fail-boot")
    assert fleet.process.wait(15) == 3
    assert not any("READY=1" in report.lines for report in manager.rest())


def test_one_worker_that_fails_does_not_keep_the_others_from_being_ready(start: Start, manager: Manager) -> None:
    start(workers=2, instance="fail-boot-1")
    assert manager.until("READY=1")[-1].status == "degraded: 1 of 2 workers ready, generation 1"


def test_a_refused_reload_ends_with_ready_and_says_why(start: Start, manager: Manager) -> None:
    fleet = start(workers=1)
    manager.until("READY=1")
    fleet.write(config_text(fleet.port).replace("workers", "wrokers"))
    fleet.hup()
    assert news(manager.until("READY=1")) == [["RELOADING=1"], ["READY=1"]]
    fleet.hup()
    status = manager.until("READY=1")[-1].status
    assert status.startswith("serving: 1 of 1 workers ready, generation 1, the last reload was REFUSED: ")
    assert f"{fleet.file}:2: error: " in status


def test_a_dead_worker_is_a_degraded_fleet_until_its_successor_serves(start: Start, manager: Manager) -> None:
    fleet = start(workers=2)
    manager.until("READY=1")
    wait_for(fleet.is_ready, "the sidecar is there")
    fleet.kill_worker(1)
    assert manager.until("STATUS=degraded")[-1].status == "degraded: 1 of 2 workers ready, generation 1"
    assert manager.until("STATUS=serving")[-1].news == []


def test_what_operators_have_ordered_is_in_the_status(start: Start, manager: Manager) -> None:
    fleet = start(workers=1)
    manager.until("READY=1")
    wait_for(fleet.is_ready, "the sidecar is there")
    usual = "serving: 1 of 1 workers ready, generation 1"
    assert fleet.post("/drain", {})[0] == 200
    assert manager.hear().status.startswith(f"{usual}, out of rotation by order of 127.0.0.1")
    assert fleet.post("/node", {"instance": "a", "node": "a", "state": "drain"})[0] == 200
    assert manager.hear().status.endswith(", servers out of service by order: 1")
    assert fleet.post("/overrides/clear", {})[0] == 200
    assert manager.hear().status == usual


@pytest.mark.parametrize(("workers", "left"), [(1, "1 worker left"), (2, "2 workers left")])
def test_the_status_counts_who_is_left_at_the_end(start: Start, manager: Manager, workers: int, left: str) -> None:
    fleet = start(workers=workers)
    manager.until("READY=1")
    fleet.stop()
    assert f"draining: {left}" in [report.status for report in manager.rest()]


def test_a_reload_of_a_stopping_fleet_says_nothing(start: Start, manager: Manager, tmp_path: Path) -> None:
    fleet = start(workers=1, drain=60)
    manager.until("READY=1")
    wait_for(fleet.is_ready, "the sidecar is there")
    fleet.send_signal(signal.SIGTERM)
    fleet.hup()
    assert fleet.process.wait(10) == 0
    assert not [line for line in news(list(manager.rest())) if line[0] != "STOPPING=1"]


def test_the_watchdog_is_fed_twice_in_its_period_and_not_when_the_master_hangs(start: Start, manager: Manager) -> None:
    fleet = start({"WATCHDOG_USEC": "1000000"}, workers=1)
    manager.until("READY=1")
    manager.until("WATCHDOG=1")
    times = []
    for _ in range(6):
        manager.until("WATCHDOG=1")
        times.append(time.monotonic())
    assert 0.4 < median(after - before for before, after in pairwise(times)) < 0.9
    os.kill(fleet.process.pid, signal.SIGSTOP)
    list(manager.rest())
    manager.sock.settimeout(1.5)
    with pytest.raises(TimeoutError):
        manager.hear()
    os.kill(fleet.process.pid, signal.SIGCONT)


def test_without_a_watchdog_none_is_fed(start: Start, manager: Manager) -> None:
    fleet = start(workers=1)
    heard = manager.until("READY=1")
    fleet.stop()
    assert not any("WATCHDOG=1" in report.lines for report in (*heard, *manager.rest()))
