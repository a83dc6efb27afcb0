"""Signals as they come in practice: to a whole group, from a terminal, many at once, to process 1 of a container."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.kit.fleet import ENDS_WITH_US, ROOT, words_of
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import StandInFleet, StartStandIn, ask, config_text
from tests.supervisor.standin import COMMAND

NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
# What is started in the background before the master takes the shell's place is a child that it does not know.
WITH_A_STRANGER = ("sh", "-c", 'true & exec "$@"', "sh")


def test_hup_to_every_process_interrupts_nobody(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    pids = [process.pid for process in fleet.tree()]
    os.killpg(fleet.process.pid, signal.SIGHUP)
    fleet.wait_log("the file is unchanged")
    assert {ask(fleet.port)[3] for _ in range(20)} == {"a"}
    assert [process.pid for process in fleet.tree()][: len(pids)] == pids


def test_a_storm_of_hups_is_two_reloads(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2, drain=5)
    fleet.change(drain=6)
    for _ in range(25):
        fleet.hup()
    fleet.change(drain=7)
    for _ in range(25):
        fleet.hup()
    wait_for(lambda: ask(fleet.port)[2] == "7", "the last file serves")
    assert fleet.reload().accepted  # after all that was asked for before
    assert fleet.read_log().count("reload.done") <= 3


def said(terminal: int, so_far: list[bytes], text: bytes) -> bool:
    """Has this come out of the terminal?"""
    with suppress(OSError):
        so_far.append(os.read(terminal, 65536))
    return text in b"".join(so_far)


def test_ctrl_c_in_a_terminal_is_a_clean_fast_stop(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "a.toml"
    file.write_text(config_text(port) + f'\n[admin]\nlisten = "127.0.0.1:{free_port()}"\n')
    terminal, ours = pty.openpty()
    os.set_blocking(terminal, False)
    fleet = subprocess.Popen(
        [*ENDS_WITH_US, *COMMAND, "serve", "-c", str(file)], cwd=ROOT, stdin=ours, stdout=ours, stderr=ours,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(ours)
    output: list[bytes] = []
    try:
        wait_for(lambda: said(terminal, output, b"worker.ready slot=0"), "worker 0 is ready")
        wait_for(lambda: said(terminal, output, b"worker.ready slot=1"), "worker 1 is ready")
        assert ask(port)[3] == "a"
        os.write(terminal, b"\x03")
        wait_for(lambda: said(terminal, output, b"master.ended code=0"), "the fleet has ended")
        assert fleet.wait(10) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(fleet.pid, signal.SIGKILL)
        os.close(terminal)
    assert b"Traceback" not in b"".join(output)
    assert b"error" not in b"".join(output)


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[StandInFleet]:
    """A fleet whose master is process 1 where the system allows that, and has a child that it did not start."""
    allowed = subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0
    command = [*(NAMESPACE if allowed else ()), *WITH_A_STRANGER, *COMMAND]
    port = free_port()
    fleet = StandInFleet(tmp_path, port, config_text(port), command=command)
    yield fleet
    fleet.destroy()


def test_as_process_1_the_master_reaps_strangers_and_stops_on_term(contained: StandInFleet) -> None:
    fleet = contained
    master = next(process for process in fleet.tree() if words_of(process).startswith("hyper-proxy: master"))
    assert fleet.stats()["master"]["pid"] in (1, master.pid)
    assert ask(fleet.port)[3] == "a"

    def zombies() -> list[psutil.Process]:
        return [child for child in master.children() if child.status() == psutil.STATUS_ZOMBIE]

    wait_for(lambda: not zombies(), "the stranger's status is taken")
    assert len(master.children()) == 3
    old = next(child for child in master.children() if "worker 0" in words_of(child))
    old.kill()
    wait_for(lambda: fleet.stats()["workers"][0]["restarts"] == 1, "a worker is replaced as anywhere")
    master.terminate()
    assert fleet.process.wait(10) == 0
