"""More workers, fewer, none: TTIN, TTOU, WINCH."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from tests.kit.clients import Crowd
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Connect, StandInFleet, StartStandIn, ask
from tests.supervisor.test_hung import client_of
from tests.supervisor.test_restart import over


def states(fleet: StandInFleet) -> list[str]:
    """Of all slots."""
    return [worker["state"] for worker in fleet.stats()["workers"]]


def has_slots(fleet: StandInFleet, slots: int) -> bool:
    """Are there so many slots, all of them served?"""
    return states(fleet) == ["ready"] * slots


def served_by(fleet: StandInFleet, slots: int) -> bool:
    """Are there so many workers, all of them ready and nobody else left?"""
    return has_slots(fleet, slots) and fleet.stats()["leaving"] == []


def change(fleet: StandInFleet, number: int, slots: int) -> None:
    """Sends a signal and waits for that many workers."""
    fleet.send_signal(number)
    wait_for(partial(served_by, fleet, slots), f"{slots} workers serve")


def test_one_worker_more_and_one_less_fail_no_client(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, drain=0.5)
    first = fleet.worker_pids()

    def make_step(number: int) -> Callable[[], None]:
        def step() -> None:
            assert ask(fleet.port)[3] == "a"

        return step

    with Crowd(4, make_step) as crowd:
        change(fleet, signal.SIGTTIN, 3)
        wait_for(lambda: ask(fleet.port)[0] == "2", "the third is asked, too")
        change(fleet, signal.SIGTTOU, 2)
        change(fleet, signal.SIGTTOU, 1)
        change(fleet, signal.SIGTTIN, 2)
        wait_for(lambda: ask(fleet.port)[0] == "1", "the second is asked again")
    assert crowd.failures == []
    assert fleet.worker_pids()[0] == first[0]


def test_the_last_worker_stays(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    fleet.send_signal(signal.SIGTTOU)
    fleet.wait_log("workers.unchanged")
    assert served_by(fleet, 1)


def test_a_reload_brings_the_number_of_the_file_back(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1, drain=0.5)
    change(fleet, signal.SIGTTIN, 2)
    assert fleet.reload().accepted
    wait_for(partial(served_by, fleet, 1), "one worker serves")
    fleet.write("nonsense")
    change(fleet, signal.SIGTTIN, 2)
    assert not fleet.reload().accepted
    assert served_by(fleet, 2)


def test_a_slot_that_goes_while_its_worker_hangs_loses_nobody(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=2, hang=60)
    pid = fleet.kill_worker(1, signal.SIGSTOP)
    clients = [connect(fleet) for _ in range(100)]
    for client in clients:
        client.send()
    os.kill(pid, signal.SIGKILL)
    fleet.send_signal(signal.SIGTTOU)  # its successor is not there yet
    answers = Counter(client.receive()[0] for client in clients)
    assert answers == {"0": 100}
    wait_for(partial(served_by, fleet, 1), "one worker serves")


def test_all_workers_leave_and_come_back_and_who_waited_is_served(
    start_standin: StartStandIn, connect: Connect
) -> None:
    fleet = start_standin(workers=2, drain=0.5)
    idle = client_of(fleet, connect, 0)
    workers = [psutil.Process(pid) for pid in fleet.worker_pids()]
    fleet.send_signal(signal.SIGWINCH)
    assert idle.receive() == []
    wait_for(lambda: all(over(worker) for worker in workers), "all workers are gone")
    assert states(fleet) == ["stopped", "stopped"]
    assert fleet.http("GET", "/health/ready")[0] == 503
    early = [connect(fleet) for _ in range(20)]
    for client in early:
        client.send()
    fleet.hup()
    assert {client.receive()[3] for client in early} == {"a"}
    wait_for(partial(served_by, fleet, 2), "two workers serve")
    assert fleet.stop() == 0


def test_a_fleet_without_workers_stops(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1, drain=0.5)
    fleet.send_signal(signal.SIGWINCH)
    wait_for(lambda: states(fleet) == ["stopped"], "it is empty")
    assert fleet.stop() == 0


def test_workers_that_are_taken_away_one_by_one_do_not_hurry_each_other(
    start_standin: StartStandIn, connect: Connect, tmp_path: Path
) -> None:
    fleet = start_standin(workers=4, drain=30)
    busy = client_of(fleet, connect, 3)
    busy.wait_for_file(fleet, tmp_path / 'now')
    for slots in (3, 2, 1):
        fleet.send_signal(signal.SIGTTOU)
        wait_for(partial(has_slots, fleet, slots), f"{slots} workers are left")
    fleet.wait_log("worker.ended slot=1")
    assert "generation.hurried" not in fleet.read_log()
    (tmp_path / "now").touch()
    assert busy.receive()[0] == "3"


def test_a_reload_with_fewer_workers_loses_nobody_whose_worker_hangs(
    start_standin: StartStandIn, connect: Connect
) -> None:
    fleet = start_standin(workers=3, hang=60, drain=2)
    fleet.kill_worker(2, signal.SIGSTOP)
    clients = [connect(fleet) for _ in range(100)]
    for client in clients:
        client.send()
    fleet.change(workers=1, drain=2)
    assert fleet.reload().accepted
    answers = [client.receive() for client in clients]
    assert len([answer for answer in answers if answer]) == 100
    wait_for(partial(served_by, fleet, 1), "one worker serves")
