"""Where the processes of a fleet log to, and how, after a start, a reload and a signal."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

from tests.kit.fleet import whole_lines
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Connect, StandInFleet, StartStandIn, ctl
from tests.supervisor.standin import LINES


def section(path: Path, **settings: str) -> str:
    """[log] of a configuration."""
    return "\n".join(["\n[log]", *(f'{key} = "{value}"' for key, value in {"file": path, **settings}.items()), ""])


def open_logs(fleet: StandInFleet, folder: Path) -> list[str]:
    """The logs that the processes of the fleet have open, by name."""
    return [file.name for file in fleet.open_files() if file.parent == folder]


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a log in JSON."""
    return [json.loads(line) for line in whole_lines(path).splitlines()]


def said(fleet: StandInFleet, connect: Connect, number: int) -> None:
    """Has a worker log something."""
    client = connect(fleet)
    client.send(f"log {number}")
    client.receive()


def test_json_is_json_in_every_process(start_standin: StartStandIn, connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "proxy.log"
    path.parent.mkdir()
    fleet = start_standin(workers=1, extra=section(path, format="json"))
    said(fleet, connect, 7)

    def complete() -> bool:
        events = [row["event"] for row in rows(path)]
        return events.count("standin.said") == LINES and "sidecar.ready" in events

    wait_for(complete, "all lines are there")
    by_event = {row["event"]: row for row in rows(path)}
    assert by_event["master.started"]["role"] == "master"
    assert by_event["sidecar.ready"]["role"] == "sidecar"
    worker = by_event["standin.said"]
    assert (worker["number"], worker["slot"], worker["generation"]) == (7, 0, 1)
    assert worker["pid"] == fleet.worker_pids()[0]
    assert list(worker)[:3] == ["time", "level", "event"]


def test_a_reload_moves_all_processes_to_another_file_and_form(
    start_standin: StartStandIn, connect: Connect, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    fleet = start_standin(workers=2, extra=section(folder / "one.log"))
    assert open_logs(fleet, folder) == ["one.log"] * 4
    fleet.change(workers=2, extra=section(folder / "two.log", format="json"))
    assert fleet.reload().accepted
    wait_for(lambda: open_logs(fleet, folder) == ["two.log"] * 4, "master, sidecar and both workers have moved")
    before = (folder / "one.log").read_text()
    said(fleet, connect, 1)
    wait_for(lambda: sum(row["event"] == "standin.said" for row in rows(folder / "two.log")) == LINES, "a worker")
    assert (folder / "one.log").read_text() == before
    fleet.change(workers=2)
    assert fleet.reload().accepted
    wait_for(lambda: open_logs(fleet, folder) == [], "standard error is a log like others")


def test_a_level_of_a_reload_holds(start_standin: StartStandIn, connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "proxy.log"
    fleet = start_standin(workers=1, extra=section(path))
    fleet.change(workers=1, extra=section(path, level="error"))
    assert fleet.reload().accepted
    before = whole_lines(path)
    said(fleet, connect, 1)
    fleet.kill_worker(0)
    wait_for(lambda: "worker.ended" in whole_lines(path)[len(before) :], "an error is logged")
    wait_for(fleet.is_ready, "its successor is there")
    assert {line.split()[1] for line in whole_lines(path)[len(before) :].splitlines()} == {"error"}


def test_usr1_opens_all_files_anew(start_standin: StartStandIn, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "proxy.log"
    path.parent.mkdir()
    fleet = start_standin(workers=2, extra=section(path, roll="none"))
    path.rename(path.with_suffix(".old"))
    assert open_logs(fleet, path.parent) == ["proxy.old"] * 4
    fleet.send_signal(signal.SIGUSR1)
    wait_for(lambda: open_logs(fleet, path.parent) == ["proxy.log"] * 4, "all four have the new file")


def test_a_signal_that_opened_the_files_anew_is_told(start_standin: StartStandIn, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "proxy.log"
    path.parent.mkdir()
    fleet = start_standin(workers=1, extra=section(path, roll="none"))
    path.rename(path.with_suffix(".old"))
    fleet.send_signal(signal.SIGUSR1)
    wait_for(lambda: path.exists() and "info log.reopened why=" in path.read_text(), "the new file says why it begins")


def test_files_that_were_opened_anew_are_told_to_who_ordered_it(start_standin: StartStandIn, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "proxy.log"
    path.parent.mkdir()
    fleet = start_standin(workers=2, extra=section(path, roll="none"))
    path.rename(path.with_suffix(".old"))
    done = ctl(fleet, "reopen-logs")
    assert (done.returncode, done.stdout) == (0, "the log files are opened anew\n"), done
    assert open_logs(fleet, path.parent) == ["proxy.log"] * 4, "when the order is answered it is done"


def test_a_file_that_cannot_be_opened_anew_is_told_to_who_ordered_it(
    start_standin: StartStandIn, connect: Connect, tmp_path: Path
) -> None:
    path = tmp_path / "logs" / "proxy.log"
    path.parent.mkdir()
    fleet = start_standin(workers=2, extra=section(path, roll="none"))
    shutil.rmtree(path.parent)
    done = ctl(fleet, "reopen-logs")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.splitlines()[1:] == [
        f"cannot open {path} anew: No such file or directory (master, worker 0, worker 1); the old file stays in use"
    ]
    said(fleet, connect, 1)
    path.parent.mkdir()
    assert ctl(fleet, "reopen-logs").returncode == 0
    said(fleet, connect, 2)
    wait_for(lambda: "standin.said number=2" in path.read_text(), "it is opened when it can be")
    assert "Traceback" not in fleet.read_log(), "what was foreseen is no fault of the program"
