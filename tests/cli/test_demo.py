"""hyper-proxy demo: what it prints is true, and it leaves nothing behind."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest
import redis

from hyper_proxy.cli.demo import HOST, choose_ports
from tests.kit.fleet import COMMAND, ROOT
from tests.kit.ports import free_port
from tests.kit.terminal import IN_THE_BACKGROUND
from tests.kit.wait import wait_for


def start(folder: Path, *words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """The demo, its temporary files in `folder`; before: what starts it."""
    environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "PATH": "/usr/bin:/bin"}
    command = [*before, *COMMAND, "demo", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_once_shows_right_answers_of_real_clients_and_ends(tmp_path: Path) -> None:
    output, errors = start(tmp_path, "--once").communicate(timeout=60)
    assert re.search(r"^(\d+) of \1 answers are right$", output, re.MULTILINE), output + errors
    assert {line.split()[1] for line in output.splitlines()[:-1]} == {"redis-py", "pymemcache", "curl"}
    assert list(tmp_path.iterdir()) == [], "its folder is gone"


@pytest.mark.parametrize("before", [(), IN_THE_BACKGROUND])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_and_takes_everything_along(
    tmp_path: Path, number: signal.Signals, before: tuple[str, ...]
) -> None:
    demo = start(tmp_path, before=before)
    assert demo.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("Ctrl-C"):
        lines.append(demo.stdout.readline())
        assert lines[-1], f"it ended: {demo.communicate()}"
    port = re.search(r"redis-cli -p (\d+)", "".join(lines))
    assert port is not None
    with redis.Redis(HOST, int(port[1])) as client:
        assert client.set("a", "1")
    processes = psutil.Process(demo.pid).children(recursive=True)
    assert len(processes) >= 4, "master, two workers, sidecar"
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (0, "")
    wait_for(lambda: not any(process.is_running() for process in processes), "the fleet is gone")
    assert list(tmp_path.iterdir()) == [], "its folder is gone"


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port, free = taken.getsockname()[1], free_port()
        chosen = choose_ports((port, free, port))
    assert chosen[1] == free
    assert port not in chosen
    assert len(set(chosen)) == 3
