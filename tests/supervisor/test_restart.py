"""Children that die: what is kept, what comes back, and when."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from typing import Any

import psutil

from tests.kit.wait import wait_for
from tests.supervisor.conftest import Connect, StandInFleet, StartStandIn, ask


def worker(fleet: StandInFleet, slot: int = 0) -> dict[str, Any]:
    """A slot's row of /stats."""
    row: dict[str, Any] = fleet.stats()["workers"][slot]
    return row


def restarted(fleet: StandInFleet, times: int, slot: int = 0) -> bool:
    """Has the slot's worker been replaced so often?"""
    return worker(fleet, slot)["restarts"] == times


def over(process: psutil.Process) -> bool:
    """Has it ended? It may wait for an init that takes its status late."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_the_queue_of_a_killed_worker_is_served_by_its_successor(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1)
    pid = fleet.worker_pids()[0]
    os.kill(pid, signal.SIGSTOP)
    clients = [connect(fleet) for _ in range(100)]
    for client in clients:
        client.send()
    os.kill(pid, signal.SIGKILL)
    answers = [client.receive() for client in clients]
    assert len([answer for answer in answers if answer]) == 100
    assert {answer[1] for answer in answers} == {str(fleet.worker_pids()[0])}


def test_a_killed_worker_costs_only_its_own_connections(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=2)
    clients = [connect(fleet) for _ in range(20)]
    slots = [client.ask()[0] for client in clients]
    fleet.kill_worker(0)
    for client, slot in zip(clients, slots, strict=True):
        if slot == "1":
            assert client.ask()[0] == "1"


def test_a_killed_worker_is_reported_and_comes_back(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    pid = fleet.kill_worker(1)
    wait_for(partial(restarted, fleet, 1, 1), "worker 1 has a successor")
    wait_for(lambda: worker(fleet, 1)["state"] == "ready", "it is ready")
    row = worker(fleet, 1)
    assert row["pid"] != pid
    assert row["last_exit"] == "signal KILL (possibly out of memory)"
    assert worker(fleet, 0)["restarts"] == 0
    assert f'error worker.ended slot=1 worker={pid} cause="signal KILL (possibly out of memory)"' in fleet.read_log()


def test_quick_deaths_are_followed_by_longer_pauses(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    pauses = []
    for deaths in range(1, 4):
        (pid,) = fleet.worker_pids()
        started = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        wait_for(partial(restarted, fleet, deaths), "the next worker")
        pauses.append(time.monotonic() - started)
        wait_for(lambda: worker(fleet)["state"] == "ready", "it is ready")
    assert pauses[0] >= 0.08
    assert pauses[1] >= 0.18
    assert pauses[2] >= 0.38


def test_a_dead_sidecar_comes_back_and_traffic_does_not_notice(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1)
    client = connect(fleet)
    before = client.ask()
    fleet.sidecar().kill()
    assert client.ask() == before
    # Nobody is refused meanwhile: the socket and its queue are the master's.
    assert fleet.stats()["workers"][0]["restarts"] == 0
    assert client.ask() == before
    fleet.wait_log("sidecar.ended")


def test_the_children_of_a_killed_master_end_with_it(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, hang=60)
    os.kill(fleet.worker_pids()[0], signal.SIGSTOP)
    children = fleet.tree()[1:]
    assert len(children) == 3
    fleet.send_signal(signal.SIGKILL)
    wait_for(lambda: all(over(child) for child in children), "all children have ended")


def test_a_worker_that_does_not_answer_does_not_hold_up_the_statistics(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, hang=60)
    pid = fleet.worker_pids()[1]
    os.kill(pid, signal.SIGSTOP)
    assert 1 in fleet.stats()["silent"]
    os.kill(pid, signal.SIGCONT)
    assert ask(fleet.port)


def test_counters_survive_a_worker_and_gauges_do_not(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1)
    client = connect(fleet)
    client.ask()
    before = fleet.stats()
    assert before["instances"]["a"]["accepted"] == before["workers"][0]["connections"] == 1
    fleet.kill_worker(0)
    assert client.receive() == []
    wait_for(partial(restarted, fleet, 1), "the next worker")
    ask(fleet.port)
    wait_for(lambda: worker(fleet)["connections"] == 0, "the worker knows that its client has left")
    assert fleet.stats()["instances"]["a"]["accepted"] == 2
