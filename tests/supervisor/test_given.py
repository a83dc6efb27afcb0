"""Sockets that a service manager has opened before the fleet."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

from supervisor.given import take_given
from tests.kit.fleet import Fleet
from tests.kit.ports import accepts, free_port
from tests.kit.wait import wait_for
from tests.supervisor.conftest import ask, config_text
from tests.supervisor.standin import COMMAND

# Opens the addresses of its first argument, and becomes the program that follows, as systemd does it.
ACTIVATE = """
import os, socket, sys
for number, address in enumerate(sys.argv[1].split(), 3):
    if address.startswith("/"):
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(address)
    else:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", int(address)))
    sock.listen()
    fd = sock.detach()
    if fd != number:
        os.dup2(fd, number)
        os.close(fd)
    os.set_inheritable(number, True)
os.environ |= {"LISTEN_FDS": str(number - 2), "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": "a:b"}
os.execv(sys.argv[2], sys.argv[2:])
"""


def activated(*addresses: object) -> list[str]:
    """A stand-in fleet that finds these open."""
    return [sys.executable, "-c", ACTIVATE, " ".join(map(str, addresses)), *COMMAND]


def test_given_sockets_are_served_by_all_workers_and_stay_the_managers(tmp_path: Path) -> None:
    given, own, path = free_port(), free_port(), tmp_path / "given.sock"

    def text(workers: int) -> str:
        return config_text(given, workers=workers, listen=(f"127.0.0.1:{own}", f"unix:{path}"))

    with Fleet(text(2), tmp_path, command=activated(given, path)) as fleet:
        master = fleet.tree()[0]
        listening = [row.laddr.port for row in master.net_connections() if row.status == "LISTEN"]
        assert (listening.count(given), listening.count(own)) == (1, 2)
        assert ask(given)[3] == ask(own)[3] == "a"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"hello\n")
            assert client.recv(100).split()[3] == b"a"
        fleet.write(text(3))
        assert fleet.reload().accepted
        assert {ask(own)[0] for _ in range(40)} == {"0", "1", "2"}
        assert ask(given)[3] == "a"
        assert fleet.stop() == 0
    assert path.exists()


def test_an_upgrade_hands_them_on(tmp_path: Path) -> None:
    given, path = free_port(), tmp_path / "given.sock"
    text = config_text(given, workers=2, listen=(f"unix:{path}",))
    with Fleet(text, tmp_path, command=activated(given, path)) as fleet:
        old = fleet.process.pid
        fleet.send_signal(signal.SIGUSR2)
        new = wait_for(lambda: pid if (pid := fleet.stats()["master"]["pid"]) != old else 0, "a new master", 40)
        try:
            assert fleet.process.wait(20) == 0
            assert ask(given)[3] == "a"
            fleet.write(text.replace("workers = 2", "workers = 3"))
            assert fleet.reload().accepted
            assert ask(given)[3] == "a"
        finally:
            os.kill(new, signal.SIGTERM)
        wait_for(lambda: not accepts(fleet.admin_port), "the new master has ended", 20)
    assert path.exists()


def test_a_socket_that_no_instance_has_is_no_start(tmp_path: Path) -> None:
    other = free_port()
    fleet = Fleet(config_text(free_port()), tmp_path, ready=False, command=activated(other))
    assert fleet.process.wait(15) == 71
    reason = f"cannot listen on 127.0.0.1:{other}: the service manager has opened it, and no instance has it"
    assert f"{reason}; change instance.listen in {fleet.file}" in fleet.read_log()


def test_what_was_passed_to_another_process_is_not_ours(tmp_path: Path) -> None:
    port = free_port()
    with Fleet(config_text(port), tmp_path, command=COMMAND, env={"LISTEN_FDS": "1", "LISTEN_PID": "1"}):
        assert ask(port)[3] == "a"


def test_the_names_go_from_the_environment() -> None:
    environment = {"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "a", "PATH": "/bin"}
    assert take_given(environment) == {}
    assert environment == {"PATH": "/bin"}
