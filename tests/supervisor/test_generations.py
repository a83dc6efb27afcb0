"""What a reload brings into force with new workers, seen from outside."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

import psutil
import pytest

from tests.kit.fleet import words_of
from tests.kit.ports import accepts, free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Client, Connect, StandInFleet, StartStandIn, ask


def workers(fleet: StandInFleet) -> list[dict[str, Any]]:
    """The rows of /stats for the slots."""
    rows: list[dict[str, Any]] = fleet.stats()["workers"]
    return rows


def leaving(fleet: StandInFleet) -> list[int]:
    """The generations of the workers that let their clients finish, one for each."""
    return sorted(row["generation"] for row in fleet.stats()["leaving"])


def slots_answering(port: int) -> set[str]:
    """Which slots' workers take new connections."""
    return {ask(port)[0] for _ in range(40)}


def test_more_workers_come_as_a_new_generation_and_clients_of_the_old_finish(
    start_standin: StartStandIn, connect: Connect
) -> None:
    fleet = start_standin(workers=1, drain=5)
    client = connect(fleet)
    old = client.ask()[1]
    fleet.change(workers=3, drain=5)
    verdict = fleet.reload()
    assert verdict.accepted
    assert verdict.body["generation"] == 2
    assert "3 new workers in the place of the old ones" in verdict.body["summary"]
    assert slots_answering(fleet.port) == {"0", "1", "2"}
    assert [(row["slot"], row["generation"], row["state"]) for row in workers(fleet)] == [
        (slot, 2, "ready") for slot in range(3)
    ]
    assert str(workers(fleet)[0]["pid"]) != old
    assert client.receive() == []  # between two requests
    wait_for(lambda: leaving(fleet) == [], "the old worker has gone")
    assert fleet.log_contains("generation.gone retired=1")


def test_fewer_workers_and_more_again(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=3, drain=1)
    for count in (1, 2, 4):
        fleet.change(workers=count, drain=1)
        assert fleet.reload().accepted
        assert slots_answering(fleet.port) == {str(slot) for slot in range(count)}


def test_a_new_generation_that_does_not_boot_leaves_the_old_one_as_it_was(
    start_standin: StartStandIn, connect: Connect
) -> None:
    fleet = start_standin(workers=2)
    before, pids, master = fleet.http("GET", "/config"), fleet.worker_pids(), psutil.Process(fleet.process.pid)
    fds = master.num_fds()
    client = connect(fleet)
    served = client.ask()
    fleet.change(workers=3, instance="fail-boot-2")
    verdict = fleet.reload()
    assert verdict.status == 409
    assert "worker 2 of the new generation" in verdict.body["error"]
    assert "told to fail at boot" in verdict.body["error"]
    assert client.ask() == served
    assert fleet.worker_pids() == pids
    assert slots_answering(fleet.port) == {"0", "1"}
    assert fleet.http("GET", "/config") == before
    wait_for(lambda: len(fleet.tree()) == 4, "the candidates are gone")
    wait_for(lambda: master.num_fds() == fds, "no descriptor is left over")
    fleet.change(workers=3)
    assert fleet.reload().accepted


def test_a_candidate_that_is_killed_leaves_the_old_generation_as_it_was(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, drain=1)
    pids = fleet.worker_pids()
    fleet.change(workers=3, instance="slow-boot")
    fleet.hup()
    fleet.wait_log("reload.renewing generation=2 workers=3 because=proxy.workers")
    candidates = wait_for(lambda: [one.pid for one in fleet.tree() if " gen 2 " in words_of(one)], "a candidate")
    os.kill(candidates[0], signal.SIGKILL)
    fleet.wait_log("reload.refused generation=1")
    assert "signal KILL" in fleet.stats()["config"]["last_reload"]["error"]
    assert fleet.worker_pids() == pids
    assert ask(fleet.port)[3] == "a"


def connect_to_newest(fleet: StandInFleet, connect: Connect) -> Client:
    """A client of the newest generation: the one before may just be emptying the queue of its socket."""

    def newest() -> list[Client]:
        client = connect(fleet)
        answer = []
        with suppress(ConnectionError):  # who has not asked yet when a worker retires is let go
            answer = client.ask()
        return [client] * (bool(answer) and int(answer[1]) in fleet.worker_pids())

    return wait_for(newest, "a client of the newest generation")[0]


def test_no_more_than_two_generations_linger(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1, drain=60)
    clients: list[Client] = []
    for count in (2, 3, 4):
        clients.append(connect_to_newest(fleet, connect))
        clients[-1].wait_for_file(fleet, f"/nonexistent-{count}")  # a request that does not end
        fleet.change(workers=count, drain=60)
        assert fleet.reload().accepted
    wait_for(lambda: 1 not in leaving(fleet), "the oldest has been ended")
    assert {2, 3} >= set(leaving(fleet)) >= {3}
    assert fleet.log_contains("generation.hurried retired=1")
    assert clients[0].receive() == []
    assert clients[2].sock.getpeername()  # its worker still waits for it
    assert workers(fleet)[3]["state"] == "ready"


def test_what_is_left_of_a_generation_at_its_deadline_is_killed(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1, drain=1)
    client = connect(fleet)
    pid = int(client.ask()[1])
    os.kill(pid, signal.SIGSTOP)
    fleet.change(workers=2, drain=1)
    assert fleet.reload().accepted
    assert leaving(fleet) == [1]
    wait_for(lambda: leaving(fleet) == [], "it was killed")
    assert fleet.log_contains(f"worker.not_drained slot=0 worker={pid}")
    assert slots_answering(fleet.port) == {"0", "1"}


def test_a_drain_ends_retired_workers_too(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1, drain=60)
    client = connect(fleet)
    client.ask()
    client.wait_for_file(fleet, "/nonexistent")
    fleet.change(workers=2, drain=1)
    assert fleet.reload().accepted
    fleet.send_signal(signal.SIGINT)
    assert fleet.process.wait(5) == 0


def test_counters_go_on_over_generations(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1, drain=60)
    client = connect(fleet)
    client.ask()
    client.wait_for_file(fleet, "/nonexistent")
    fleet.change(workers=2, drain=60)
    assert fleet.reload().accepted
    assert fleet.stats()["instances"]["a"]["accepted"] == 1
    ask(fleet.port)
    assert fleet.stats()["instances"]["a"]["accepted"] == 2
    client.close()
    os.kill(fleet.stats()["leaving"][0]["pid"], signal.SIGKILL)
    wait_for(lambda: leaving(fleet) == [], "the old worker has gone")
    assert fleet.stats()["instances"]["a"]["accepted"] == 2


def get(port: int, path: str = "/health/live") -> int:
    """The status of an answer of the sidecar at that port."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_sidecar_moves_to_another_address(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=1)
    client = connect(fleet)
    served = client.ask()
    old, new = fleet.admin_port, free_port()
    fleet.write(fleet.file.read_text().replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}"))
    verdict = fleet.reload()  # at the old address, which answers to the end
    assert verdict.accepted
    assert f"the sidecar is at 127.0.0.1:{new}" in verdict.body["summary"]
    assert get(new) == 200
    wait_for(lambda: not accepts(old), "the old address is closed")
    assert client.ask() == served
    fleet.admin_port = new
    assert fleet.stats()["config"]["generation"] == 2
    wait_for(lambda: len(fleet.tree()) == 3, "the old sidecar has ended")
    assert not fleet.log_contains("sidecar.ended")


def test_a_sidecar_that_cannot_move_stays(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        fleet.write(fleet.file.read_text().replace(f"127.0.0.1:{fleet.admin_port}", f"127.0.0.1:{taken}"))
        verdict = fleet.reload()
    assert verdict.status == 409
    assert verdict.body["key"] == "admin.listen"
    assert f"127.0.0.1:{taken}" in verdict.body["error"]
    assert fleet.stats()["config"]["generation"] == 1


@pytest.mark.parametrize("count", [1, 3])
def test_a_stop_in_the_middle_of_a_cold_reload_ends_everything(start_standin: StartStandIn, count: int) -> None:
    fleet = start_standin(workers=2, drain=1)
    fleet.change(workers=count, instance="slow-boot", drain=1)
    fleet.hup()
    fleet.wait_log("reload.renewing")
    fleet.send_signal(signal.SIGTERM)
    assert fleet.process.wait(5) == 0
    assert fleet.log_contains("reload.refused")
