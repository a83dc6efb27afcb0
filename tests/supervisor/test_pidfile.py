"""The pid file: locked while a master lives, and nobody's when it does not."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from supervisor import pidfile
from tests.kit.ports import free_port
from tests.supervisor.conftest import StandInFleet, StartStandIn, ask, config_text


def text_with(path: Path, port: int) -> str:
    """A configuration with a pid file."""
    return config_text(port).replace("[proxy]", f'[proxy]\npidfile = "{path}"')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where no file is yet."""
    return tmp_path / "proxy.pid"


def start(folder: Path, path: Path, ready: bool = True) -> StandInFleet:
    """A fleet with that pid file."""
    port = free_port()
    return StandInFleet(folder, port, text_with(path, port), ready)


def test_it_names_the_master_and_is_gone_at_the_end(tmp_path: Path, path: Path) -> None:
    with start(tmp_path, path) as fleet:
        assert path.read_text() == f"{fleet.process.pid}\n"
        assert fleet.stop() == 0
    assert not path.exists()


def test_a_second_master_is_refused_and_the_first_one_serves_on(tmp_path: Path, path: Path) -> None:
    with start(tmp_path, path) as first:
        second = start(tmp_path, path, ready=False)
        assert second.process.wait(15) == 71
        reason = f"cannot use the pid file {path}: it belongs to a running master (pid {first.process.pid})"
        assert re.search(rf"{second.file}:\d+: error: {re.escape(reason)}; stop that one, or change proxy\.pidfile\n",
                         second.read_log())
        assert ask(first.port)[3] == "a"
        assert path.read_text() == f"{first.process.pid}\n"


def test_the_file_of_a_killed_master_is_taken_over(tmp_path: Path, path: Path) -> None:
    path.write_text(f"{os.getpid()}\n")  # a number that lives, and is no master
    with start(tmp_path, path) as first:
        assert path.read_text() == f"{first.process.pid}\n"
        first.send_signal(signal.SIGKILL)
        first.process.wait(10)
        assert path.exists()
        with start(tmp_path, path) as second:
            assert path.read_text() == f"{second.process.pid}\n"


def test_no_child_holds_the_lock(tmp_path: Path, path: Path) -> None:
    with start(tmp_path, path) as fleet:
        holders = [process.pid for process in fleet.tree() if str(path) in {f.path for f in process.open_files()}]
    assert holders == [fleet.process.pid]


def test_a_start_that_fails_leaves_no_file(tmp_path: Path, path: Path, start_standin: StartStandIn) -> None:
    first = start_standin()
    second = StandInFleet(tmp_path, first.port, text_with(path, first.port), ready=False)
    assert second.process.wait(15) == 71
    assert not path.exists()


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "proxy.pid"
    fleet = start(tmp_path, path, ready=False)
    assert fleet.process.wait(15) == 71
    assert f"cannot use the pid file {path}: No such file or directory; change proxy.pidfile" in fleet.read_log()


def test_a_reload_does_not_move_it(tmp_path: Path, path: Path) -> None:
    with start(tmp_path, path) as fleet:
        fleet.write(text_with(tmp_path / "other.pid", fleet.port))
        verdict = fleet.reload()
        assert not verdict.accepted
        assert "proxy.pidfile" in verdict.body["error"]
        assert path.read_text() == f"{fleet.process.pid}\n"


def test_a_file_that_somebody_has_replaced_stays(path: Path, tmp_path: Path) -> None:
    mine = pidfile.claim(str(path))
    path.rename(tmp_path / "away")
    path.write_text("another\n")
    mine.remove()
    assert path.read_text() == "another\n"


def test_a_successor_holds_the_lock_without_a_gap(path: Path) -> None:
    old = pidfile.claim(str(path))
    successor = pidfile.inherit(str(path), os.dup(old.fd))
    path.write_text("1\n")
    old.close()
    with pytest.raises(pidfile.PidFileError):
        pidfile.claim(str(path))
    assert path.read_text() == "1\n"
    successor.write()
    assert path.read_text() == f"{os.getpid()}\n"
    successor.remove()
    assert not path.exists()
    pidfile.claim(str(path)).remove()


def test_a_symbolic_link_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("important\n")
    path.symlink_to(tmp_path / "target")
    with pytest.raises(pidfile.PidFileError):
        pidfile.claim(str(path))
    assert (tmp_path / "target").read_text() == "important\n"
