"""USR2: another program takes the place of the one that runs, or nothing happens."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kit.fleet import words_of
from tests.kit.installed import BROKEN, STAND_IN, Installed
from tests.kit.manager import Manager
from tests.kit.ports import accepts, free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Connect, StandInFleet, ask, config_text, ctl

UPGRADED_S = 40.0  # a busy machine takes its time over a program that starts and its workers


class Upgradable(StandInFleet):
    """A fleet whose program can be replaced; `master` is the process that serves."""

    def __init__(self, folder: Path, program: Installed, env: dict[str, str] | None = None, **settings: Any) -> None:
        self.program = program
        port = free_port()
        self.text = {"port": port, "extra": "", **settings}
        super().__init__(folder, port, config_text(**self.text), env=env, command=program.command)
        self.master = self.process.pid

    def signal_master(self, number: int) -> None:
        """To the process that serves."""
        os.kill(self.master, number)

    def state(self) -> dict[str, Any]:
        """The part of /stats about the master."""
        state: dict[str, Any] = self.stats()["master"]
        return state

    def upgrade(self) -> int:
        """USR2, and wait until another master serves, and its workers alone; the result is the pid of the old one."""
        old, workers = self.master, self.worker_pids()
        self.signal_master(signal.SIGUSR2)
        another = lambda: pid if (pid := self.state()["pid"]) != old else 0  # noqa: E731
        self.master = wait_for(another, "a new master", UPGRADED_S)
        wait_for(lambda: not any(map(listens, workers)), "the old workers take no clients any more")
        return old

    def fail_to_upgrade(self) -> str:
        """USR2, and wait for the reason why nothing came of it."""
        before = self.state()["last_upgrade"]
        self.signal_master(signal.SIGUSR2)
        wait_for(lambda: self.state()["last_upgrade"] != before, "a verdict", UPGRADED_S)
        last = self.state()["last_upgrade"]
        assert not last["ok"]
        assert self.state()["pid"] == self.master
        return str(last["error"])


StartUpgradable = Callable[..., Upgradable]


@pytest.fixture
def start_upgradable(tmp_path: Path) -> Iterator[StartUpgradable]:
    """`start_upgradable(workers=1, ...)`: a ready fleet, stopped at the test's end whoever is its master then."""
    fleets: list[Upgradable] = []

    def start(env: dict[str, str] | None = None, **settings: Any) -> Upgradable:
        fleets.append(Upgradable(tmp_path, Installed(tmp_path, STAND_IN), env, **settings))
        return fleets[-1]

    yield start
    for fleet in fleets:
        fleet.destroy()


def listens(pid: int) -> bool:
    """May this process still accept clients?"""
    try:
        return any(row.status == psutil.CONN_LISTEN for row in psutil.Process(pid).net_connections())
    except psutil.NoSuchProcess:
        return False


def ended(pid: int) -> bool:
    """Is there no such process any more, or only its remains?"""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_another_master_takes_over_and_the_old_one_lets_its_clients_finish(
    start_upgradable: StartUpgradable, connect: Connect, tmp_path: Path
) -> None:
    path, pidfile = tmp_path / "a.sock", tmp_path / "pid"
    fleet = start_upgradable(workers=2, drain=60, listen=(f"unix:{path}",))
    client, inode = connect(fleet), path.stat().st_ino
    client.ask()
    finish = tmp_path / "finish"
    client.wait_for_file(fleet, finish)
    old = fleet.upgrade()
    assert fleet.state()["last_upgrade"] == {"ok": True, "at": pytest.approx(fleet.state()["last_upgrade"]["at"]),
                                             "pid": old, "error": ""}  # fmt: skip
    assert fleet.stats()["config"]["generation"] == 2
    assert ask(fleet.port)[1] in map(str, fleet.worker_pids())
    assert not ended(old)
    finish.touch()
    assert client.receive()  # the answer, by the old worker
    assert fleet.process.wait(10) == 0
    assert path.stat().st_ino == inode
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect(str(path))
        unix.sendall(b"hello\n")
        assert unix.recv(100)
    assert not pidfile.exists()


def test_the_new_master_is_a_master_like_any_other(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1, drain=1)
    fleet.upgrade()
    fleet.change(workers=2, drain=2)
    assert ctl(fleet, "reload").returncode == 0
    assert {ask(fleet.port)[0] for _ in range(30)} == {"0", "1"}
    fleet.change(workers=2, drain=3)
    fleet.signal_master(signal.SIGHUP)
    wait_for(lambda: ask(fleet.port)[2] == "3", "the file serves")
    second = fleet.upgrade()
    wait_for(lambda: ended(second), "the second master has ended")
    assert fleet.stats()["config"]["generation"] == 5
    fleet.kill_worker(0)
    wait_for(lambda: all(row["state"] == "ready" for row in fleet.stats()["workers"]), "its successor")
    fleet.signal_master(signal.SIGTERM)
    wait_for(lambda: ended(fleet.master), "the third master has ended")
    assert not accepts(fleet.port)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_program_of_which_nothing_comes_changes_nothing(
    start_upgradable: StartUpgradable, connect: Connect, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "a.sock"
    fleet = start_upgradable(workers=1, drain=5, listen=(f"unix:{path}",))
    fleet.write(fleet.file.read_text().replace("[proxy]", "[proxy]\nupgrade_timeout_s = 4"))
    assert fleet.reload().accepted
    client, master = connect(fleet), psutil.Process(fleet.master)
    served, config, fds = client.ask(), fleet.http("GET", "/config"), master.num_fds()
    text, reason = BROKEN[kind]
    fleet.program.install(text)
    assert reason in fleet.fail_to_upgrade()
    assert "error upgrade.failed error=" in fleet.read_log()
    assert client.ask() == served
    assert fleet.http("GET", "/config") == config
    assert path.is_socket()
    wait_for(lambda: master.num_fds() == fds, "no descriptor is left over")
    assert len(master.children()) == 2
    fleet.program.install(STAND_IN)
    fleet.upgrade()
    assert ask(fleet.port)


def test_a_file_that_the_new_program_refuses_is_the_reason(start_upgradable: StartUpgradable, connect: Connect) -> None:
    fleet = start_upgradable(workers=1)
    served = ask(fleet.port)
    good = fleet.file.read_text()
    fleet.write(good.replace("drain_timeout_s", "drain_timeuot_s"))
    error = fleet.fail_to_upgrade()
    assert f"{fleet.file}:3: error: " in error
    assert "did you mean 'drain_timeout_s'" in error
    assert ask(fleet.port) == served


def test_a_worker_that_does_not_boot_is_the_reason(start_upgradable: StartUpgradable, tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    fleet = start_upgradable(workers=2, listen=(f"unix:{path}",))
    pids = fleet.worker_pids()
    fleet.change(workers=2, instance="fail-boot-1", listen=(f"unix:{path}",))
    assert "worker 1: " in fleet.fail_to_upgrade()
    assert "told to fail at boot" in fleet.state()["last_upgrade"]["error"]
    assert fleet.worker_pids() == pids
    assert path.is_socket()
    assert ask(fleet.port)[3] == "a"


def test_a_port_that_is_taken_is_the_reason(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        fleet.change(workers=1, listen=(f"127.0.0.1:{port}",))
        error = fleet.fail_to_upgrade()
    assert f"cannot listen on 127.0.0.1:{port}" in error
    assert ask(fleet.port)


def test_the_new_program_takes_the_file_as_it_is_now(start_upgradable: StartUpgradable, tmp_path: Path) -> None:
    gone, kept, fresh = tmp_path / "gone.sock", free_port(), free_port()
    fleet = start_upgradable(workers=3, drain=1, listen=(f"unix:{gone}", f"127.0.0.1:{kept}"))
    fleet.change(workers=2, drain=2, listen=(f"127.0.0.1:{kept}", f"127.0.0.1:{fresh}"))
    fleet.upgrade()
    assert fleet.process.wait(10) == 0
    for port in (fleet.port, kept, fresh):
        assert {ask(port)[0] for _ in range(30)} == {"0", "1"}
        assert ask(port)[2] == "2"
    assert not gone.exists()


def test_orders_are_refused_while_an_upgrade_is_under_way(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1, drain=1)
    fleet.program.install(BROKEN["never gets ready"][0])
    fleet.signal_master(signal.SIGUSR2)
    fleet.wait_log("upgrade.started")
    verdict = fleet.reload()
    assert (verdict.status, verdict.body["error"]) == (409, "an upgrade is under way")
    fleet.signal_master(signal.SIGUSR2)
    fleet.wait_log('upgrade.refused error="an upgrade is under way"')
    below = psutil.Process(fleet.master).children
    successor = wait_for(
        lambda: [one.pid for one in below(recursive=True) if "program.py" in words_of(one)], "the new program"
    )
    fleet.signal_master(signal.SIGTERM)
    assert fleet.process.wait(10) == 0
    wait_for(lambda: ended(successor[0]), "the new program has ended, too")


def test_the_new_program_takes_the_place_of_a_master_that_dies(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1)
    fleet.change(workers=1, instance="slow-boot")
    fleet.signal_master(signal.SIGUSR2)
    fleet.wait_log("upgrade.started")
    below = psutil.Process(fleet.master).children
    successor = wait_for(
        lambda: [one.pid for one in below(recursive=True) if "new master" in words_of(one)], "the new program"
    )
    os.kill(fleet.process.pid, signal.SIGKILL)
    fleet.wait_log("upgrade.took_over")
    assert ask(fleet.port)[3] == "slow-boot"
    assert fleet.state()["pid"] == successor[0]


def test_a_master_that_loses_sight_of_the_new_program_stays_the_only_one(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1)
    fleet.change(workers=1, instance="slow-boot")
    fleet.signal_master(signal.SIGUSR2)
    between, successor = wait_for(lambda: family(fleet.master), "the new program, and the process in between")[0]
    os.kill(between, signal.SIGKILL)
    wait_for(lambda: ended(successor), "the new program has ended, too")
    assert fleet.state()["pid"] == fleet.master
    assert not fleet.state()["last_upgrade"]["ok"]
    assert ask(fleet.port)[3] != "slow-boot"


def family(master: int) -> list[tuple[int, int]]:
    """The pids of the process in between and of the new program, once they are there."""
    pairs: list[tuple[int, int]] = []
    for child in psutil.Process(master).children():
        with suppress(psutil.NoSuchProcess):
            pairs += [(child.pid, one.pid) for one in child.children() if "new master" in words_of(one)]
    return pairs


def test_counters_go_on_in_the_new_master(start_upgradable: StartUpgradable, connect: Connect, tmp_path: Path) -> None:
    fleet = start_upgradable(workers=2, drain=60)
    for _ in range(5):
        ask(fleet.port)
    client = connect(fleet)
    client.ask()
    client.wait_for_file(fleet, tmp_path / 'finish')
    fleet.kill_worker(1 - int(client_slot(fleet, client)))
    wait_for(lambda: all(row["state"] == "ready" for row in fleet.stats()["workers"]), "its successor")
    before = accepted(fleet)
    fleet.upgrade()
    assert accepted(fleet) == before
    ask(fleet.port)
    assert accepted(fleet) == before + 1
    (tmp_path / "finish").touch()
    assert fleet.process.wait(10) == 0
    assert accepted(fleet) == before + 1
    fleet.upgrade()
    assert accepted(fleet) == before + 1


def test_counters_pass_through_a_master_that_was_replaced_itself(
    start_upgradable: StartUpgradable, connect: Connect, tmp_path: Path
) -> None:
    fleet = start_upgradable(workers=1, drain=60)
    client = connect(fleet)
    client.ask()
    client.wait_for_file(fleet, tmp_path / 'finish')
    fleet.upgrade()
    ask(fleet.port)
    second = fleet.upgrade()
    assert accepted(fleet) == 2
    assert not ended(second)
    (tmp_path / "finish").touch()
    assert client.receive()
    assert fleet.process.wait(10) == 0
    wait_for(lambda: ended(second), "the second master has ended, too")
    assert accepted(fleet) == 2
    assert not fleet.log_contains("upgrade.successor_ended")


def client_slot(fleet: Upgradable, client: Any) -> int:
    """The slot whose worker has this client's connection."""
    port = client.sock.getsockname()[1]
    for slot, pid in enumerate(fleet.worker_pids()):
        if any(one.raddr and one.raddr.port == port for one in psutil.Process(pid).net_connections()):
            return slot
    raise AssertionError("no worker has it")


def accepted(fleet: Upgradable) -> int:
    """A counter."""
    count: int = fleet.stats()["instances"]["a"]["accepted"]
    return count


def test_the_pid_file_and_the_service_manager_know_the_new_master(
    start_upgradable: StartUpgradable, tmp_path: Path
) -> None:
    manager, pidfile = Manager(str(tmp_path / "notify")), tmp_path / "pid"
    try:
        fleet = start_upgradable(env={"NOTIFY_SOCKET": manager.address}, workers=1, drain=1)
        fleet.write(fleet.file.read_text().replace("[proxy]", f'[proxy]\npidfile = "{pidfile}"'))
        manager.until("READY=1")
        fleet.upgrade()  # the file names a pid file now: the new master makes it
        assert int(pidfile.read_text()) == fleet.master
        reports = manager.until("READY=1")
        (handover,) = [report for report in reports if any("MAINPID" in line for line in report.lines)]
        assert handover.lines == [f"MAINPID={fleet.master}"]
        assert handover.pid == fleet.process.pid
        assert reports[-1].pid == fleet.master
        assert fleet.process.wait(10) == 0
        first = fleet.upgrade()
        assert int(pidfile.read_text()) == fleet.master
        wait_for(lambda: ended(first), "the first heir has ended")
        assert int(pidfile.read_text()) == fleet.master
        heard = [*manager.until(f"MAINPID={fleet.master}"), *manager.until("READY=1"), *manager.rest()]
        assert not any("STOPPING=1" in report.lines for report in heard)
        fleet.program.install(BROKEN["ends at once"][0])
        fleet.fail_to_upgrade()
        assert int(pidfile.read_text()) == fleet.master
        assert not any("MAINPID" in line for report in manager.rest() for line in report.lines)
    finally:
        manager.close()


def test_the_main_process_is_a_child_of_the_service_manager(
    start_upgradable: StartUpgradable, connect: Connect, tmp_path: Path
) -> None:
    """systemd can't wait for the child of another process: a stop would kill it at once."""
    manager = Manager(str(tmp_path / "notify"))
    fleet = start_upgradable(env={"NOTIFY_SOCKET": manager.address}, workers=1, drain=60)
    client = connect(fleet)
    client.wait_for_file(fleet, tmp_path / 'now')
    wait_for(lambda: fleet.stats()["workers"][0]["connections"] == 1, "a client that keeps the old master")
    old = fleet.upgrade()
    assert manager.until("MAINPID=")[-1].lines == [f"MAINPID={fleet.master}"]
    manager.close()
    assert not ended(old)
    assert psutil.Process(fleet.master).ppid() != old
    (tmp_path / "now").touch()
    assert client.receive()[0] == "0"
    wait_for(lambda: ended(old), "the old master has ended")
    assert ask(fleet.port)[3] == "a"


def test_what_operators_have_ordered_holds_in_the_new_master(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1)
    orders: dict[str, dict[str, object]] = {
        "/node": {"instance": "a", "node": "a", "state": "drain"},
        "/log-level": {"level": "debug"},
        "/drain": {},
    }
    for path, body in orders.items():
        assert fleet.post(path, body)[0] == 200
    before = fleet.stats()["overrides"]
    fleet.upgrade()
    assert fleet.stats()["overrides"] == before
    assert (before["nodes"][0]["state"], before["log_level"]["level"]) == ("drained", "debug")
    assert fleet.http("GET", "/health/ready")[0] == 503
    assert fleet.log_contains(f"debug worker.born slot=0 worker={fleet.worker_pids()[0]}"), "the level of the new one"


def test_ctl_upgrade_waits_for_what_becomes_of_it(start_upgradable: StartUpgradable) -> None:
    fleet = start_upgradable(workers=1)
    done = ctl(fleet, "upgrade")
    old, fleet.master = fleet.master, fleet.state()["pid"]
    assert (done.returncode, done.stdout) == (0, f"master {old} has handed over to master {fleet.master}\n")
    fleet.program.install(BROKEN["ends at once"][0])
    failed = ctl(fleet, "upgrade")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "exit code 7" in failed.stderr
    fleet.program.install(BROKEN["never gets ready"][0])
    fleet.signal_master(signal.SIGUSR2)
    wait_for(lambda: fleet.read_log().count("upgrade.started") == 3, "an upgrade is under way")
    for words in (("upgrade",), ("node", "drain", "a", "a")):
        refused = ctl(fleet, *words)
        assert (refused.returncode, "an upgrade is under way" in refused.stderr) == (1, True), words
