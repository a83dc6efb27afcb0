"""Children that are alive and do nothing: found, made to show their stack, replaced; nobody waits for them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.kit.wait import wait_for
from tests.supervisor.conftest import Client, Connect, StandInFleet, StartStandIn, ask
from tests.supervisor.test_restart import over, worker

HANG_S = 1.0
LATE_S = 5.0  # of a watch that looks twice a second, on a busy machine; without the setting it would be nine


def client_of(fleet: StandInFleet, connect: Connect, slot: int) -> Client:
    """A client whose connection this worker has."""

    def hit() -> Client | None:
        client = connect(fleet)
        return client if client.ask()[0] == str(slot) else None

    client = wait_for(hit, f"a connection to worker {slot}")
    assert client is not None
    return client


def test_a_worker_that_spins_shows_where_and_is_replaced(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=2, hang=HANG_S)
    spinning, other = client_of(fleet, connect, 0), client_of(fleet, connect, 1)
    pid = fleet.worker_pids()[0]
    spinning.send("spin")
    started = time.monotonic()
    while not fleet.log_contains("worker.hung"):
        assert other.ask()[0] == "1"
    assert HANG_S * 0.9 <= time.monotonic() - started < HANG_S + LATE_S
    wait_for(lambda: worker(fleet)["restarts"] == 1 and worker(fleet)["state"] == "ready", "its successor serves")
    assert other.ask()[0] == "1"
    assert f'worker.hung slot=0 worker={pid} why="no sign of life for 1 s"' in fleet.read_log()
    assert "Fatal Python error: Aborted" in fleet.read_log()
    assert "in go_round_for_ever" in fleet.read_log()
    assert worker(fleet)["last_exit"] == "signal ABRT: no sign of life for 1 s"
    end = worker(fleet)["exit"]
    assert (end["signal"], end["code"], end["error"]) == ("ABRT", None, "no sign of life for 1 s")
    assert end["uptime_s"] > HANG_S


def test_a_stopped_worker_is_replaced_and_its_queue_is_served_by_a_neighbour(
    start_standin: StartStandIn, connect: Connect
) -> None:
    fleet = start_standin(workers=2, hang=HANG_S)
    pid = fleet.kill_worker(0, signal.SIGSTOP)
    clients = [connect(fleet) for _ in range(60)]
    for client in clients:
        client.send()
    answers = [client.receive() for client in clients]
    assert not over(psutil.Process(pid))
    assert {answer[0] for answer in answers} == {"1"}
    assert len(answers) == 60
    assert fleet.log_contains("slot.adopted slot=0 state=hung by=1")
    wait_for(lambda: worker(fleet)["restarts"] == 1, "it is replaced")
    assert worker(fleet)["last_exit"] == "signal KILL: no sign of life for 1 s"
    fleet.wait_log("slot.given_back slot=0 by=1")
    client_of(fleet, connect, 0)
    fleet.kill_worker(1)  # it must not take a queue of slot 0 with it
    assert client_of(fleet, connect, 0).ask()[0] == "0"


def test_who_hangs_alone_says_that_nobody_serves(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1, hang=HANG_S)
    fleet.kill_worker(0, signal.SIGSTOP)
    late = connect(fleet)
    late.send()
    wait_for(lambda: fleet.http("GET", "/health/ready")[0] == 503, "readiness is red")
    assert fleet.log_contains("error fleet.down")
    assert late.receive()[0] == "0"
    wait_for(lambda: fleet.http("GET", "/health/ready")[0] == 200, "readiness is green")
    fleet.wait_log("fleet.recovered")


def test_a_stopped_sidecar_is_replaced_and_traffic_does_not_notice(
    start_standin: StartStandIn, connect: Connect
) -> None:
    fleet = start_standin(workers=1, hang=HANG_S)
    client = connect(fleet)
    before = client.ask()
    sidecar = fleet.sidecar()
    wait_for(lambda: client.ask() == before and time.time() - sidecar.create_time() > 2, "its heart beats")
    sidecar.suspend()
    wait_for(lambda: client.ask() == before and over(sidecar), "it is killed")
    assert fleet.stats()["workers"][0]["restarts"] == 0
    assert client.ask() == before
    assert fleet.log_contains(f'sidecar.hung sidecar={sidecar.pid} why="no sign of life for 1 s"')


def test_a_machine_that_stood_still_costs_no_worker(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, hang=HANG_S)
    everybody = [process.pid for process in fleet.tree()]
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    still = time.monotonic()
    wait_for(lambda: time.monotonic() > still + 3 * HANG_S, "time goes by")
    for pid in everybody:
        os.kill(pid, signal.SIGCONT)
    awake = time.monotonic()
    while time.monotonic() < awake + 2 * HANG_S:
        assert ask(fleet.port)
    with suppress(psutil.NoSuchProcess):
        assert [process.pid for process in fleet.tree()] == everybody
    assert "hung" not in fleet.read_log()


def test_quit_shows_the_stack_of_each_worker_and_ends(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=2, drain=60, hang=60)
    client_of(fleet, connect, 0).send("spin")
    wait_for(lambda: fleet.stats()["silent"] == [0], "worker 0 spins")
    fleet.send_signal(signal.SIGQUIT)
    assert fleet.process.wait(10) == 0
    stacks = fleet.read_log().split("worker.stack slot=")[1:]
    assert [stack[0] for stack in stacks] == ["0", "1"]
    assert all("most recent call first" in stack for stack in stacks)
    assert ["in go_round_for_ever" in stack for stack in stacks] == [True, False]


def test_a_worker_that_is_slow_to_start_is_not_taken_for_hung(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, hang=HANG_S)
    Path(f"{fleet.file}.slow-1").touch()
    fleet.kill_worker(1)
    fleet.wait_log("slot.adopted slot=1 state=booting by=0")
    assert {ask(fleet.port)[0] for _ in range(20)} == {"0"}
    wait_for(lambda: worker(fleet, 1)["state"] == "ready", "it serves at last")
    assert worker(fleet, 1)["restarts"] == 1
    assert "hung" not in fleet.read_log()
    wait_for(lambda: ask(fleet.port)[0] == "1", "it has its sockets for itself again")
    assert worker(fleet, 1)["adopted_by"] is None


def test_quit_to_a_worker_shows_its_stack_and_does_no_harm(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=2)
    client = client_of(fleet, connect, 1)
    fleet.kill_worker(1, signal.SIGQUIT)
    fleet.wait_log("most recent call first")
    assert client.ask()[0] == "1"
    assert worker(fleet, 1)["restarts"] == 0
