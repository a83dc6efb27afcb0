"""The systemd unit: its commands do what it says of them, and systemd has nothing against it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from hyper_proxy.config.load import inspect
from hyper_proxy.config.settings import keys_of
from supervisor.herald import STOP_RESERVE_S
from tests.kit.fleet import COMMAND, ROOT, Fleet
from tests.kit.manager import Manager
from tests.kit.ports import free_port

UNIT = ROOT / "etc" / "hyper_proxy.service"
SOCKET = ROOT / "etc" / "hyper_proxy.socket"
PROGRAM = "/opt/hyper_proxy/bin/hyper-proxy"
FILE = "/etc/hyper_proxy.toml"
SECTIONS = ("Unit", "Service", "Install")


def directives() -> dict[str, list[str]]:
    """KEY -> its values, over all sections."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            key, _, value = line.partition("=")
            found[key].append(value)
    return found


def one(key: str) -> str:
    """The value of a directive that stands there once."""
    (value,) = directives()[key]
    return value


def command(key: str, file: Path) -> list[str]:
    """A command of the unit, for this program and this file."""
    program, *words = shlex.split(one(key))
    assert program == PROGRAM
    assert FILE in words
    return [*COMMAND, *(str(file) if word == FILE else word for word in words)]


def test_it_has_the_form_of_a_unit() -> None:
    sections = [line.strip("[]") for line in UNIT.read_text().splitlines() if line.startswith("[")]
    assert tuple(sections) == SECTIONS
    lines = [line for line in UNIT.read_text().splitlines() if line and not line.startswith(("#", "["))]
    assert [line for line in lines if not re.fullmatch(r"[A-Z][A-Za-z]+=.*", line)] == []
    assert [key for key, values in directives().items() if len(values) > 1] == []


def verify(path: Path) -> str:
    """What systemd says about a unit; where there is no systemd, nobody says anything."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return ""
    done = subprocess.run([program, "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60)
    return "\n".join(line for line in done.stderr.splitlines() if path.name in line)


def test_systemd_has_nothing_to_say(tmp_path: Path) -> None:
    accounts = re.compile(r"^(User|Group|SocketGroup)=hyper_proxy$", re.MULTILINE)
    for unit in (UNIT, SOCKET):
        (tmp_path / unit.name).write_text(accounts.sub(r"\1=root", unit.read_text()).replace(PROGRAM, "/bin/true"))
    assert [verify(tmp_path / unit.name) for unit in (UNIT, SOCKET)] == ["", ""]


def test_the_socket_of_the_unit_is_that_of_the_minimal_sample() -> None:
    """Put side by side as they are shipped, the three files serve."""
    config, _ = inspect(str(ROOT / "etc" / "minimal.toml"))
    assert config is not None
    addresses = re.findall(r"^ListenStream=(.+)$", SOCKET.read_text(), re.MULTILINE)
    assert addresses == [listen.address for instance in config.instances for listen in instance.listen]


def test_start_reload_and_stop_are_those_of_the_unit(tmp_path: Path) -> None:
    """As systemd would run them, with its socket in the environment."""
    assert (one("Type"), one("NotifyAccess"), one("KillMode")) == ("notify", "main", "mixed")
    manager = Manager(str(tmp_path / "notify"))
    text = f"""[proxy]\nworkers = 1\n[[instance]]\nname = "a"\nprotocol = "redis"\nlisten = ["127.0.0.1:{free_port()}"]
  [[instance.level]]\n  storage = "sqlite"\n  servers = ["a.db"]\n"""
    with Fleet(text, tmp_path, ready=False, env={"NOTIFY_SOCKET": manager.address}) as fleet:
        assert command("ExecStart", fleet.file) == [*COMMAND, "serve", "-c", str(fleet.file)]
        manager.until("READY=1")

        def reload() -> subprocess.CompletedProcess[str]:
            words = command("ExecReload", fleet.file)
            return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=30)

        fleet.write(text.replace("workers = 1", "workers = 1\ndrain_timeout_s = 3"))
        assert reload().returncode == 0
        heard = [report.news for report in manager.until("READY=1") if report.news]
        assert [news[0] for news in heard] == ["RELOADING=1", "READY=1"]
        fleet.write(text.replace("sqlite", "sqlight"))
        refused = reload()
        assert refused.returncode == 1
        assert f"{fleet.file}:" in refused.stderr + refused.stdout
    manager.close()


def test_a_stop_may_take_as_long_as_a_drain() -> None:
    drain_s = keys_of("proxy")["drain_timeout_s"].default
    assert isinstance(drain_s, int)
    assert int(one("TimeoutStopSec")) >= drain_s + STOP_RESERVE_S


def test_a_file_with_errors_is_not_tried_again(tmp_path: Path) -> None:
    fleet = Fleet("[proxy]\nwrokers = 1\n", tmp_path, ready=False)
    assert str(fleet.process.wait(15)) in one("RestartPreventExitStatus").split()


@pytest.mark.parametrize(
    ("directive", "folder"),
    [("RuntimeDirectory", "/run"), ("LogsDirectory", "/var/log"), ("StateDirectory", "/var/lib")],
)
def test_the_folders_are_those_of_the_sample(directive: str, folder: str) -> None:
    path = f"{folder}/{one(directive)}"
    pages = (ROOT / "etc" / "hyper_proxy.toml").read_text() + (ROOT / "docs" / "operations.md").read_text()
    assert path in pages
