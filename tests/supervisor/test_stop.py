"""How a fleet ends."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import pytest

from tests.kit.wait import wait_for
from tests.supervisor.conftest import Connect, StandInFleet, StartStandIn, ctl

SOON_S = 10.0  # also of a busy machine: who waits in vain for a client or a worker here does so for a minute


def ready_status(fleet: StandInFleet) -> int:
    """What a load balancer sees."""
    return fleet.http("GET", "/health/ready")[0]


def test_term_lets_requests_finish_and_ends_with_0(
    start_standin: StartStandIn, connect: Connect, tmp_path: Path
) -> None:
    fleet = start_standin(workers=1, drain=60)
    busy, idle = connect(fleet), connect(fleet)
    idle.ask()
    busy.wait_for_file(fleet, tmp_path / 'now')
    fleet.send_signal(signal.SIGTERM)
    assert idle.receive() == []
    assert ready_status(fleet) == 503
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", fleet.port), timeout=5)
    (tmp_path / "now").touch()
    assert busy.receive()[0] == "0"
    assert fleet.process.wait(SOON_S) == 0


def test_the_drain_ends_at_its_deadline(start_standin: StartStandIn, connect: Connect, tmp_path: Path) -> None:
    fleet = start_standin(workers=1, drain=1)
    busy = connect(fleet)
    busy.wait_for_file(fleet, tmp_path / 'never')
    wait_for(lambda: fleet.stats()["workers"][0]["state"] == "ready", "it is asked")
    started = time.monotonic()
    fleet.send_signal(signal.SIGTERM)
    assert fleet.process.wait(SOON_S) == 0
    assert time.monotonic() - started >= 0.9


def test_a_second_term_is_fast(start_standin: StartStandIn, connect: Connect, tmp_path: Path) -> None:
    fleet = start_standin(workers=1, drain=60)
    busy = connect(fleet)
    busy.wait_for_file(fleet, tmp_path / 'never')
    fleet.send_signal(signal.SIGTERM)
    fleet.wait_log("fleet.draining")
    fleet.send_signal(signal.SIGTERM)
    assert fleet.process.wait(SOON_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_int_and_quit_are_fast_even_when_a_worker_hangs(start_standin: StartStandIn, number: int) -> None:
    fleet = start_standin(workers=2, drain=60, hang=60)
    fleet.kill_worker(0, signal.SIGSTOP)
    fleet.send_signal(number)
    assert fleet.process.wait(SOON_S) == 0


@pytest.mark.parametrize(("fast", "state"), [(False, "draining"), (True, "stopping")])
def test_the_sidecar_passes_the_end_on(start_standin: StartStandIn, fast: bool, state: str) -> None:
    fleet = start_standin(workers=1)
    status, answer = fleet.post("/stop", {"fast": fast})
    assert (status, answer["master"]["state"]) == (200, state)
    assert fleet.process.wait(SOON_S) == 0


def test_ctl_says_which_fleet_it_has_stopped(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    done = ctl(fleet, "stop", "fast")
    assert done.returncode == 0
    assert done.stdout == "the fleet is stopping\n"
    assert done.stderr == f"fleet of {fleet.file} (master {fleet.process.pid}), at 127.0.0.1:{fleet.admin_port}\n"
    assert fleet.process.wait(SOON_S) == 0


def test_a_fleet_that_is_told_to_stop_while_it_starts_stops(start_standin: StartStandIn) -> None:
    fleet = start_standin(ready=False)
    fleet.wait_log("master.started")
    assert fleet.stop() == 0


def test_a_reload_while_the_fleet_stops_is_refused(
    start_standin: StartStandIn, connect: Connect, tmp_path: Path
) -> None:
    fleet = start_standin(workers=1, drain=60)
    busy = connect(fleet)
    busy.wait_for_file(fleet, tmp_path / 'now')
    assert ctl(fleet, "stop").returncode == 0
    done = ctl(fleet, "reload")
    assert (done.returncode, "the fleet is stopping" in done.stderr) == (1, True)
    (tmp_path / "now").touch()
    assert fleet.process.wait(SOON_S) == 0
