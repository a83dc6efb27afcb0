"""The user that a fleet becomes, and the limit on files that it needs."""

from __future__ import annotations

import grp
import os
import pwd
import re
import signal
import socket
from pathlib import Path

import psutil

from hyper_proxy.config.load import load_text
from supervisor.limits import needed_files
from supervisor.privileges import user_of
from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import ask, config_text
from tests.supervisor.standin import COMMAND

IS_ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
NOBODY_GROUP = grp.getgrgid(NOBODY.pw_gid).gr_name
# Who is not root may not read the Python of every root: the right to read all files stays with the processes.
READING = "+dac_read_search,+dac_override"
KEEP_READING = ["setpriv", "--securebits", "+no_setuid_fixup", "--inh-caps", READING, "--ambient-caps", READING]
AS_NOBODY = ["setpriv", "--inh-caps", READING, "--ambient-caps", READING, "--reuid", str(NOBODY.pw_uid),
             "--regid", str(NOBODY.pw_gid), "--clear-groups"]  # fmt: skip

AS_READER = [word.replace(READING, "+dac_read_search") for word in AS_NOBODY]  # who may not write what is not nobody's


def text_of(port: int, folder: Path, user: str, workers: int = 2, group: str = "") -> str:
    """A configuration with a user, and all that root would own else."""
    proxy = f'[proxy]\nuser = "{user}"\ngroup = "{group}"\npidfile = "{folder}/proxy.pid"'
    text = config_text(port, workers=workers, listen=(f"unix:{folder}/proxy.sock",))
    return text.replace("[proxy]", proxy) + f'\n[log]\nfile = "{folder}/proxy.log"\n'


def status_of(pid: int) -> dict[str, str]:
    """/proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_all_processes_and_all_they_hold_are_the_users(tmp_path: Path) -> None:
    port = free_port()
    prefix = KEEP_READING if IS_ROOT else []
    user = NOBODY.pw_name if IS_ROOT else pwd.getpwuid(os.getuid()).pw_name
    uid = pwd.getpwnam(user).pw_uid
    with Fleet(text_of(port, tmp_path, user), tmp_path, command=[*prefix, *COMMAND]) as fleet:
        wait_for(lambda: len(fleet.tree()) == 4, "master, sidecar and two workers")
        for process in fleet.tree():
            status = status_of(process.pid)
            assert {int(part) for part in status["Uid"].split()} == {uid}
            assert {int(part) for part in status["Gid"].split()} == {pwd.getpwnam(user).pw_gid}
            if IS_ROOT:
                assert [int(part) for part in status["Groups"].split()] == os.getgrouplist(user, NOBODY.pw_gid)
                assert status["NoNewPrivs"] == "1"
            assert psutil.Process(process.pid).num_fds() > 0
        assert [(tmp_path / f"proxy.{kind}").stat().st_uid for kind in ("pid", "log", "sock")] == [uid] * 3
        assert ask(port)[3] == "a"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{tmp_path}/proxy.sock")
            client.sendall(b"hello\n")
            assert client.recv(100).split()[3] == b"a"

        fleet.write(text_of(port, tmp_path, user, workers=4))
        assert fleet.reload().accepted
        assert {ask(port)[0] for _ in range(60)} == {"0", "1", "2", "3"}
        assert fleet.stop() == 0
    assert not (tmp_path / "proxy.sock").exists()
    assert not (tmp_path / "proxy.pid").exists()


def test_an_upgrade_stays_the_user(tmp_path: Path) -> None:
    port = free_port()
    prefix, user = (KEEP_READING, "nobody") if IS_ROOT else ([], pwd.getpwuid(os.getuid()).pw_name)
    with Fleet(text_of(port, tmp_path, user), tmp_path, command=[*prefix, *COMMAND]) as fleet:
        old = fleet.process.pid
        fleet.send_signal(signal.SIGUSR2)
        new = wait_for(lambda: pid if (pid := fleet.stats()["master"]["pid"]) != old else 0, "a new master", 40)
        try:
            assert fleet.process.wait(20) == 0
            assert {int(part) for part in status_of(new)["Uid"].split()} == {pwd.getpwnam(user).pw_uid}
            assert (tmp_path / "proxy.pid").read_text() == f"{new}\n"
            assert ask(port)[3] == "a"
        finally:
            os.kill(new, signal.SIGTERM)
        wait_for(lambda: not (tmp_path / "proxy.pid").exists(), "the new master has ended")
        assert not (tmp_path / "proxy.sock").exists()


def refused(folder: Path, text: str, command: list[str], env: dict[str, str] | None = None) -> str:
    """The log of a fleet that ends with 77 and leaves nothing."""
    fleet = Fleet(text, folder, env, ready=False, command=[*command, *COMMAND])
    try:
        assert fleet.process.wait(15) == 77
    finally:
        fleet.destroy()
    assert not (folder / "proxy.sock").exists()
    assert not (folder / "proxy.pid").exists()
    return fleet.read_log()


def test_who_is_not_root_becomes_nobody_else(tmp_path: Path) -> None:
    log = refused(tmp_path, text_of(free_port(), tmp_path, "root"), AS_NOBODY if IS_ROOT else [])
    assert "this process may not become user 'root': Operation not permitted" in log
    assert re.search(r"/\S+:\d+: error: this process may not become .*; start it as root, or change proxy\.user\b", log)


def test_a_user_or_group_that_is_unknown_is_named(tmp_path: Path) -> None:
    log = refused(tmp_path, text_of(free_port(), tmp_path, "n0body-at-all"), [])
    assert re.search(r"/\S+:\d+: error: there is no user 'n0body-at-all' on this system; change proxy\.user\b", log)
    log = refused(tmp_path, text_of(free_port(), tmp_path, "", group="n0body-at-all"), [])
    assert re.search(r"/\S+:\d+: error: there is no group 'n0body-at-all' on this system; change proxy\.group\b", log)


def test_a_user_who_may_not_read_the_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "program").symlink_to(ROOT)  # only we may enter the folder
    tmp_path.chmod(0o700)
    text = text_of(free_port(), tmp_path, NOBODY.pw_name)
    log = refused(tmp_path, text, [], env={"PYTHONPATH": str(tmp_path / "program")})
    said = r"user 'nobody' may not read /\S+\.py, which is the program; install .* where it may, or change proxy\.user"
    assert re.search(said if IS_ROOT else "may not become user 'nobody'", log)
    assert "Traceback" not in log


def test_a_path_that_may_not_be_removed_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir()
    for one in (tmp_path, folder) if IS_ROOT else ():
        os.chown(one, NOBODY.pw_uid, NOBODY.pw_gid)
    text = config_text(free_port(), listen=(f"unix:{folder}/proxy.sock",))
    with Fleet(text, tmp_path, command=[*(AS_READER if IS_ROOT else []), *COMMAND]) as fleet:
        folder.chmod(0o555)
        assert fleet.stop() == 0
        assert fleet.read_log().count(" listener.not_removed ") == 1


def test_a_group_takes_the_place_of_the_users_own() -> None:
    config = load_text(text_of(6380, Path("/tmp"), "root", group=NOBODY_GROUP), "a.toml")
    user = user_of(config)
    assert user is not None
    assert (user.uid, user.gid) == (0, NOBODY.pw_gid)
    assert NOBODY.pw_gid in user.groups


def test_a_reload_makes_nobody_somebody_else(tmp_path: Path) -> None:
    port = free_port()
    with Fleet(text_of(port, tmp_path, ""), tmp_path, command=COMMAND) as fleet:
        fleet.write(text_of(port, tmp_path, "nobody"))
        verdict = fleet.reload()
        assert not verdict.accepted
        assert "proxy.user" in verdict.body["error"]
        assert verdict.body["line"] == 2


def test_too_few_files_are_no_start(tmp_path: Path) -> None:
    text = text_of(free_port(), tmp_path, "", workers=8)
    needed, _ = needed_files(load_text(text, "a.toml"), 8)
    fleet = Fleet(text, tmp_path, ready=False, command=["prlimit", f"--nofile={needed - 1}", *COMMAND])
    assert fleet.process.wait(15) == 71
    said = f"at most {needed - 1} open files are allowed, {needed} are needed by the master: 8 workers at 2 addresses"
    assert said in fleet.read_log()
    advice = r"raise the hard limit \(LimitNOFILE=, ulimit -Hn\), or have fewer of them in \S+\.toml\n"
    assert re.search(advice, fleet.read_log())


def test_enough_files_are_a_start(tmp_path: Path) -> None:
    port = free_port()
    text = text_of(port, tmp_path, "", workers=8)
    needed, _ = needed_files(load_text(text, "a.toml"), 8)
    with Fleet(text, tmp_path, command=["prlimit", f"--nofile={needed}", *COMMAND]) as fleet:
        wait_for(lambda: all(row["state"] == "ready" for row in fleet.stats()["workers"]), "all workers are ready")
        assert max(process.num_fds() for process in fleet.tree()) < needed
        assert ask(port)[3] == "a"


def test_nothing_takes_the_files_that_a_master_needs_to_replace_a_worker(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    text = text_of(port, tmp_path, "", workers=8)
    needed, _ = needed_files(load_text(text, "a.toml"), 8)
    with Fleet(text, tmp_path, command=["prlimit", f"--nofile={needed}", *COMMAND]) as fleet:
        fleet.write(text.replace(f'"127.0.0.1:{port}"', f'"127.0.0.1:{port}", "127.0.0.1:{other}"'))
        verdict = fleet.reload()
        said = f"at most {needed} open files are allowed, {needed + 8} are needed by the master: 8 workers at 3 "
        assert (verdict.status, said in verdict.body["error"]) == (409, True), verdict.body
        fleet.send_signal(signal.SIGTTIN)
        wait_for(lambda: "error workers.not_changed" in (tmp_path / "proxy.log").read_text(), "TTIN is refused")
        pid = fleet.kill_worker(0)
        wait_for(lambda: fleet.is_ready() and pid not in fleet.worker_pids() and 0 not in fleet.worker_pids(), "healed")
        assert ask(port)[3] == "a"
