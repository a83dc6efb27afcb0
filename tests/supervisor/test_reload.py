"""The reload transaction, seen from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Connect, StandInFleet, StartStandIn, ask, ctl


def last_reload(fleet: StandInFleet) -> dict[str, Any]:
    """config.last_reload of /stats."""
    verdict: dict[str, Any] = fleet.stats()["config"]["last_reload"]
    return verdict


def generations(fleet: StandInFleet) -> set[int]:
    """Of all workers and of the fleet."""
    stats = fleet.stats()
    return {worker["generation"] for worker in stats["workers"]} | {stats["config"]["generation"]}


def metric(fleet: StandInFleet, name: str) -> float:
    """One value of /metrics."""
    lines = fleet.http("GET", "/metrics")[1].decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def test_a_good_file_serves_at_once_and_clients_stay(start_standin: StartStandIn, connect: Connect) -> None:
    fleet = start_standin(workers=2, drain=5)
    clients = [connect(fleet) for _ in range(20)]
    before = [client.ask() for client in clients]
    fleet.change(drain=7)
    verdict = fleet.reload()
    assert verdict.accepted
    assert verdict.body["generation"] == 2
    after = [client.ask() for client in clients]
    assert {answer[2] for answer in before} == {"5"}
    assert {answer[2] for answer in after} == {"7"}
    assert [answer[1] for answer in before] == [answer[1] for answer in after]
    assert generations(fleet) == {2}


def test_a_refused_file_is_told_in_all_places_and_nothing_changes(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    before = fleet.http("GET", "/config")
    fleet.write(fleet.file.read_text().replace("drain_timeout_s = 5", "drain_timeuot_s = 5"))
    done = ctl(fleet, "reload")
    place = f"{fleet.file}:3: error: "
    assert done.returncode == 1
    assert place in done.stderr
    assert "did you mean 'drain_timeout_s'" in done.stderr
    verdict = last_reload(fleet)
    assert not verdict["ok"]
    assert (verdict["file"], verdict["line"], verdict["key"]) == (str(fleet.file), 3, "proxy.drain_timeuot_s")
    assert verdict["generation"] == 1
    assert place in verdict["error"]
    assert fleet.log_contains("error reload.refused generation=1")
    assert metric(fleet, "hyper_proxy_config_last_reload_successful") == 0
    assert metric(fleet, "hyper_proxy_config_last_reload_success_timestamp_seconds") < verdict["at"]
    assert fleet.http("GET", "/config") == before
    assert fleet.reload().status == 422


def test_ctl_says_what_serves_and_exits_with_0(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1, drain=5)
    fleet.change(drain=7, workers=1)
    done = ctl(fleet, "reload")
    assert done.returncode == 0
    assert done.stdout.startswith("reloaded: generation 2, ")
    assert metric(fleet, "hyper_proxy_config_last_reload_successful") == 1
    assert metric(fleet, "hyper_proxy_config_generation") == 2
    assert "ready" in ctl(fleet, "show", "workers").stdout
    assert json.loads(ctl(fleet, "show", "stats").stdout)["schema"] == 1
    assert json.loads(ctl(fleet, "show", "config").stdout)["config"]["drain_timeout_s"] == 7
    assert ctl(fleet, "nonsense").returncode == 2


def test_an_unchanged_file_is_a_success_without_a_new_generation(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    verdict = fleet.reload()
    assert verdict.accepted
    assert verdict.body["generation"] == 1
    assert verdict.body["summary"] == "the file is unchanged"


def test_hup_reloads_and_reopens_the_log(start_standin: StartStandIn, tmp_path: Path) -> None:
    log = tmp_path / "proxy.log"
    fleet = start_standin(workers=1)
    fleet.write(fleet.file.read_text() + f'\n[log]\nfile = "{log}"\n')
    fleet.hup()
    wait_for(lambda: fleet.stats()["config"]["generation"] == 2, "generation 2")
    wait_for(log.exists, "the log file")
    log.rename(tmp_path / "proxy.log.1")
    fleet.hup()
    wait_for(lambda: log.exists() and "the file is unchanged" in log.read_text(), "a line in the new file")
    assert last_reload(fleet)["ok"]


def test_a_storm_of_hups_is_two_reloads_and_ends_with_what_the_file_says(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, drain=5)
    master = psutil.Process(fleet.process.pid)
    fds = master.num_fds()
    for number in range(50):
        fleet.change(drain=10 + number)
        fleet.hup()
    wait_for(lambda: ask(fleet.port)[2] == "59", "the last file serves")
    wait_for(lambda: len(generations(fleet)) == 1, "all workers agree")
    assert last_reload(fleet)["ok"]
    assert 1 <= fleet.read_log().count("reload.done") <= 2
    wait_for(lambda: master.num_fds() == fds, "no descriptor is left over")


def test_callers_that_come_together_share_the_next_reload(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    verdicts = []
    threads = [threading.Thread(target=lambda: verdicts.append(fleet.reload())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [verdict.accepted for verdict in verdicts] == [True] * 8


def test_one_worker_that_refuses_stops_the_reload_everywhere(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    fleet.change(instance="refuse-1")
    verdict = fleet.reload()
    assert verdict.status == 409
    assert verdict.body["error"] == f"worker 1 can't take it: {fleet.file}: told to refuse"
    assert {ask(fleet.port)[3] for _ in range(20)} == {"a"}
    assert generations(fleet) == {1}
    fleet.change(drain=9)
    assert fleet.reload().accepted
    assert generations(fleet) == {2}


def test_one_worker_that_crashes_stops_the_reload_everywhere(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    pids = fleet.worker_pids()
    fleet.change(instance="crash-1")
    verdict = fleet.reload()
    assert verdict.status == 409
    said = "worker 1 can't take it: KeyError: 'told to crash'; the traceback is on standard error (of a service: "
    assert verdict.body["error"].startswith(said)
    fleet.wait_log('raise KeyError("told to crash")')
    assert {ask(fleet.port)[3] for _ in range(20)} == {"a"}
    assert fleet.worker_pids() == pids


def test_a_configuration_that_ends_every_worker_does_not_come_into_force(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    fleet.change(instance="die")
    verdict = fleet.reload()
    assert verdict.status == 409
    assert "no worker outlived its preparation" in verdict.body["error"]
    wait_for(fleet.is_ready, "the successors")
    assert {ask(fleet.port)[3] for _ in range(20)} == {"a"}
    assert generations(fleet) == {1}


def test_one_worker_that_does_not_answer_stops_the_reload_in_time(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, drain=1, prepare=1)
    pids = fleet.worker_pids()
    fleet.change(instance="mute-1")
    verdict = fleet.reload()
    assert verdict.status == 409
    assert verdict.body["error"] == f"worker 1 (pid {pids[1]}) did not answer within 1 s"
    assert {ask(fleet.port)[3] for _ in range(20)} == {"a"}


def test_a_worker_that_dies_while_asked_does_not_stop_the_reload(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    pid = fleet.worker_pids()[1]
    os.kill(pid, signal.SIGSTOP)
    fleet.change(drain=8)
    fleet.hup()
    fleet.wait_log("reload.preparing")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: fleet.stats()["config"]["generation"] == 2, "generation 2")
    wait_for(lambda: generations(fleet) == {2}, "the successor has it too")
    wait_for(lambda: {ask(fleet.port)[2] for _ in range(20)} == {"8"}, "all serve it")
    wait_for(lambda: fleet.log_contains("reload.done"), "the verdict")
    assert not fleet.log_contains("worker.killed")


@pytest.mark.timeout(20)
def test_a_worker_that_hangs_in_its_commit_is_replaced(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, prepare=1)
    pids = fleet.worker_pids()
    fleet.change(instance="stick-1")
    assert fleet.reload().accepted
    wait_for(lambda: fleet.stats()["workers"][1]["state"] == "ready", "worker 1 is back")
    assert fleet.worker_pids()[0] == pids[0]
    assert fleet.worker_pids()[1] != pids[1]
    assert {ask(fleet.port)[3] for _ in range(20)} == {"stick-1"}


def test_listeners_come_go_and_change_hands(start_standin: StartStandIn, connect: Connect, tmp_path: Path) -> None:
    fleet = start_standin(workers=2, listen=(f"unix:{tmp_path / 'a.sock'}",))
    stays = connect(fleet)
    stays.ask()
    other = free_port()
    fleet.change(instance="b", listen=(f"127.0.0.1:{other}",))
    verdict = fleet.reload()
    assert verdict.accepted
    assert "1 listener added, 1 listener removed" in verdict.body["summary"]
    assert {ask(other)[0] for _ in range(30)} == {"0", "1"}
    assert {ask(fleet.port)[3] for _ in range(30)} == {"b"}
    assert not (tmp_path / "a.sock").exists()
    fleet.change(instance="b")
    assert fleet.reload().accepted
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", other), timeout=5)
    assert stays.ask()[0] in "01"
    fleet.kill_worker(0)
    wait_for(lambda: fleet.stats()["workers"][0]["state"] == "ready", "worker 0 is back")
    assert {ask(fleet.port)[0] for _ in range(30)} == {"0", "1"}


def test_a_new_listener_whose_port_is_taken_refuses_the_reload(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        free = free_port()
        fleet.change(listen=(f"127.0.0.1:{free}", f"127.0.0.1:{port}"))
        verdict = fleet.reload()
    assert verdict.status == 409
    assert verdict.body["key"] == "instance[0].listen[2]"
    assert fleet.file.read_text().splitlines()[verdict.body["line"] - 1].startswith("listen = ")
    assert f"127.0.0.1:{port}" in verdict.body["error"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", free), timeout=5)


def test_what_needs_a_restart_says_so(start_standin: StartStandIn, tmp_path: Path) -> None:
    fleet = start_standin(workers=2)
    fleet.write(fleet.file.read_text().replace("workers = 2", f'workers = 3\npidfile = "{tmp_path / "pid"}"'))
    verdict = fleet.reload()
    assert verdict.status == 409
    assert verdict.body["key"] == "proxy.pidfile"
    assert f"{fleet.file}:3: error: proxy.pidfile: " in verdict.body["error"]
    assert f'"" is in force, "{tmp_path / "pid"}" needs a restart: it is locked as' in verdict.body["error"]
    assert len(fleet.stats()["workers"]) == 2


def test_a_log_that_cannot_be_opened_refuses_the_reload(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    fleet.write(fleet.file.read_text() + '\n[log]\nfile = "/proc/proxy.log"\n')
    verdict = fleet.reload()
    assert verdict.status == 409
    assert verdict.body["key"] == "log.file"
    assert verdict.body["line"] > 1
