"""How a fleet starts, and how it refuses to."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from hyper_proxy.cli.serve import who_answers
from hyper_proxy.config.endpoints import Listen
from hyper_proxy.config.load import embedded_default
from supervisor.listeners import why_no_port
from tests.kit.fleet import COMMAND, ROOT, Fleet
from tests.kit.ports import free_port
from tests.supervisor.conftest import StandInFleet, StartStandIn, ask, config_text
from tests.supervisor.test_privileges import AS_READER, IS_ROOT


def ended(fleet: Fleet) -> int:
    """The exit status of a fleet that ends by itself."""
    return fleet.process.wait(15)


def test_each_worker_serves_its_share_of_one_port(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=2)
    seen = {ask(fleet.port)[0] for _ in range(40)}
    assert seen == {"0", "1"}


def test_who_may_not_have_a_port_is_told_who_may() -> None:
    said = why_no_port(PermissionError(errno.EACCES, "Permission denied"))
    assert said == "Permission denied, for so low a port takes root or CAP_NET_BIND_SERVICE"


def test_a_unix_path_is_served_and_removed_at_the_end(start_standin: StartStandIn, tmp_path: Path) -> None:
    path = tmp_path / "proxy.sock"
    fleet = start_standin(listen=(f"unix:{path}",))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"hello\n")
        assert client.recv(100).split()[3] == b"a"
    assert fleet.stop() == 0
    assert not path.exists()


def test_a_stale_socket_file_is_replaced_but_a_living_one_is_not(start_standin: StartStandIn, tmp_path: Path) -> None:
    path = tmp_path / "proxy.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    first = start_standin(listen=(f"unix:{path}",))
    second = start_standin(ready=False, listen=(f"unix:{path}",))
    assert ended(second) == 71
    assert f"cannot listen on unix:{path}" in second.read_log()
    assert ask(first.port)[3] == "a"
    assert path.exists()


def test_a_bad_file_ends_with_78_and_every_finding(tmp_path: Path) -> None:
    text = config_text(free_port()).replace("workers", "wrokers").replace('"redis"', '"rediss"')
    fleet = Fleet(text, tmp_path, ready=False)
    assert ended(fleet) == 78
    errors = [line for line in fleet.read_log().splitlines() if ": error: " in line]
    assert len(errors) >= 3
    assert f"{fleet.file}:2: error:" in errors[0]
    assert "did you mean 'workers'" in errors[0]


def test_a_missing_file_ends_with_78(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    done = subprocess.run([*COMMAND, "serve", "-c", str(missing)], cwd=ROOT, capture_output=True, text=True, timeout=15)
    assert done.returncode == 78
    assert f"{missing}: error: HP101" in done.stderr


def test_a_port_in_use_ends_with_71_and_names_port_and_key(start_standin: StartStandIn, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        fleet = StandInFleet(tmp_path, port, config_text(port), ready=False)
        assert ended(fleet) == 71
    log = fleet.read_log()
    assert f"127.0.0.1:{port}" in log
    assert "in use" in log
    assert "instance[0].listen[0]" in log


def test_two_fleets_of_one_user_do_not_share_a_port_in_silence(start_standin: StartStandIn, tmp_path: Path) -> None:
    first = start_standin()
    second = StandInFleet(tmp_path, first.port, config_text(first.port), ready=False)
    assert ended(second) == 71


def test_the_admin_port_in_use_ends_with_71(start_standin: StartStandIn, tmp_path: Path) -> None:
    first = start_standin()
    text = config_text(free_port()) + f'\n[admin]\nlisten = "127.0.0.1:{first.admin_port}"\n'
    second = StandInFleet(tmp_path, 0, text, ready=False)
    assert ended(second) == 71
    assert "two fleets take two [admin] listen" in second.read_log()


def refused(file: Path) -> str:
    """What `serve` of a file says that ends with 71."""
    done = subprocess.run([*COMMAND, "serve", "-c", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=15)
    assert done.returncode == 71, done
    return done.stderr


def test_a_place_that_can_not_be_had_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    admin, text = f'[admin]\nlisten = "127.0.0.1:{free_port()}"\n', config_text(free_port())
    file.write_text(admin + text.replace("[proxy]\n", '[proxy]\npidfile = "gone/pid"\n'))
    wanted = f"{file}:4: error: cannot use the pid file {tmp_path}/gone/pid: No such file or directory; change proxy.p"
    assert wanted in refused(file)
    file.write_text(admin + text.replace("127.0.0.1:", f"unix:{tmp_path}/gone/", 1))
    assert re.search(rf"{file}:\d+: error: cannot listen on unix:.*; change instance\[0\]\.listen", refused(file))


def test_a_worker_that_can_not_even_load_says_why(tmp_path: Path) -> None:
    program, file = tmp_path / "program.py", tmp_path / "shop.toml"
    program.write_text(
        'import sys\nsys.modules["hyper_proxy.engine"] = None\n'
        "from hyper_proxy.cli.main import main\nsys.exit(main())\n"
    )
    file.write_text(f'[admin]\nlisten = "127.0.0.1:{free_port()}"\n{config_text(free_port())}')
    command = [sys.executable, str(program), "serve", "-c", str(file)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 3, done
    assert "no worker could start: ModuleNotFoundError: import of hyper_proxy.engine halted" in done.stderr
    assert "; the traceback is on standard error (of a service: in the journal)" in done.stderr
    assert "Traceback (most recent call last)" in done.stderr


def test_a_second_fleet_of_one_file_hears_of_the_first(start_standin: StartStandIn, tmp_path: Path) -> None:
    first = start_standin(workers=1)
    said = refused(first.file)
    assert f"cannot listen on 127.0.0.1:{first.admin_port}: it is in use" in said
    assert f"The fleet of this file runs already (master {first.process.pid}): " in said
    assert f"`hyper-proxy ctl -c {first.file} reload`" in said
    assert "change admin.listen" not in said, "that is not what is wrong"
    other = tmp_path / "other.toml"
    other.write_text(first.file.read_text())
    assert f"The fleet of {first.file} (master {first.process.pid}) answers there" in refused(other)
    assert first.process.poll() is None


def test_a_taken_port_that_no_file_has_named_is_a_default(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(config_text(free_port()))
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # somebody else has it: as good
            other.bind(("127.0.0.1", 22122))
            other.listen()
        said = refused(file)
    assert f"It is the default of [admin] listen, which {file} does not set" in said


def test_no_worker_that_can_start_ends_with_3_and_the_error(start_standin: StartStandIn) -> None:
    fleet = start_standin(ready=False, instance="fail-boot")
    assert ended(fleet) == 3
    assert fleet.log_contains(f"hyper-proxy: no worker could start: {fleet.file}: told to fail at boot\n")


def test_a_worker_that_cannot_use_its_storage_is_one_line(tmp_path: Path) -> None:
    local = '  [[instance.level]]\n  storage = "local"\n  [[instance.level]]'
    text = config_text(free_port()).replace("  [[instance.level]]", local).replace('"redis"\n  s', '"sqlite"\n  s')
    fleet = Fleet(text.replace("127.0.0.1:6379:1 a", "/proc/nodir/x.db"), tmp_path, ready=False)
    assert ended(fleet) == 3
    lines = [line for line in fleet.read_log().splitlines() if "nodir" in line]
    line = next(number for number, row in enumerate(fleet.file.read_text().splitlines(), 1) if "servers =" in row)
    place = f"no worker could start: {fleet.file}:{line}: error: instance[0].level[1].servers: instance 'a' node "
    assert len(lines) == 1
    assert lines[0].startswith(f"hyper-proxy: {place}")
    assert "Traceback" not in fleet.read_log()


def test_the_embedded_default_that_finds_its_port_taken_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # somebody else has it: as good
            other.bind(("127.0.0.1", 22122))
            other.listen()
        folder = tmp_path / "data"
        done = subprocess.run([*COMMAND, "serve", "--data", str(folder)], cwd=ROOT, capture_output=True, text=True,
                              timeout=15)  # fmt: skip
    assert done.returncode == 71
    assert "127.0.0.1:22122" in done.stderr
    assert "-c FILE" in done.stderr
    assert not folder.exists()


def test_a_data_folder_that_may_not_be_written_is_named_before_anything_starts(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o555)
    who = AS_READER if IS_ROOT else []
    done = subprocess.run([*who, *COMMAND, "serve", "--data", str(folder)], cwd=ROOT, capture_output=True, text=True,
                          timeout=15)  # fmt: skip
    said = f"hyper-proxy: this user may not write into the data folder {folder}; use --data DIR\n"
    assert (done.returncode, done.stderr) == (71, said)


def test_who_has_no_file_and_meets_another_fleet_is_told_to_write_one(start_standin: StartStandIn) -> None:
    first, config = start_standin(), embedded_default("data")
    theirs = replace(config, admin=Listen("127.0.0.1", first.admin_port))
    said = "write one for this one (etc/minimal.toml is the shortest) and start it with -c FILE"
    assert who_answers(theirs).endswith(said)


def test_a_file_and_a_folder_are_wrong_usage() -> None:
    done = subprocess.run([*COMMAND, "serve", "-c", "x.toml", "--data", "d"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, "not allowed with" in done.stderr) == (2, True)


def test_the_master_is_tiny(start_standin: StartStandIn) -> None:
    fleet = start_standin()
    master = psutil.Process(fleet.process.pid)
    assert master.num_threads() == 1
    loaded = Path(f"/proc/{master.pid}/maps").read_text()
    for foreign in ("gevent", "greenlet", "_ssl", "markupsafe"):
        assert foreign not in loaded, foreign
    modules = {name.split(".")[0] for name in Path(f"{fleet.file}.modules").read_text().split()}
    foreign = "gevent greenlet flask werkzeug ssl redis pymemcache prometheus_client asyncio multiprocessing"
    assert modules & set(foreign.split()) == set()
    assert "supervisor" in modules
    workers = [psutil.Process(pid) for pid in fleet.worker_pids()]
    assert all("gevent" in Path(f"/proc/{worker.pid}/maps").read_text() for worker in workers)


def test_no_child_holds_what_is_not_its_own(start_standin: StartStandIn) -> None:
    """Each worker: its own listener, pipe, log, and the descriptors of its event loop; nobody else's."""
    fleet = start_standin(workers=2)
    listening = {
        process.pid: [c for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
        for process in fleet.tree()
    }
    pids = fleet.worker_pids()
    assert [len(listening[pid]) for pid in pids] == [1, 1]
    assert len(listening[fleet.process.pid]) == 3


def test_processes_say_what_they_are(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    titles = sorted(" ".join(process.cmdline()).rstrip() for process in fleet.tree())
    assert titles[0] == f"hyper-proxy: master {fleet.file}"
    assert titles[1] == "hyper-proxy: sidecar"
    assert titles[2] == "hyper-proxy: worker 0 gen 1 ready"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTERM])
def test_children_ignore_the_operators_signals(start_standin: StartStandIn, number: int) -> None:
    fleet = start_standin(workers=1)
    children = [process.pid for process in fleet.tree()[1:]]
    for pid in children:
        os.kill(pid, number)
    assert ask(fleet.port)[3] == "a"
    assert fleet.stats()["workers"][0]["restarts"] == 0
    assert [process.pid for process in fleet.tree()[1:]] == children
