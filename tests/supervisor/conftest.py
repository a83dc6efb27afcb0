"""Fleets whose workers run the stand-in, and clients of theirs."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.supervisor.standin import COMMAND

StartStandIn = Callable[..., "StandInFleet"]
Connect = Callable[["StandInFleet"], "Client"]


class StandInFleet(Fleet):
    """A fleet of the stand-in, and the port of its first instance."""

    def __init__(
        self,
        folder: Path,
        port: int,
        text: str,
        ready: bool = True,
        env: dict[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.port = port
        super().__init__(text, folder, ready=ready, command=command, env=env)

    def is_ready(self) -> bool:
        """Are all workers ready, not only enough of them?"""
        return super().is_ready() and all(worker["state"] == "ready" for worker in self.stats()["workers"])

    def change(self, **settings: Any) -> None:
        """Writes a configuration with other settings; nothing is reloaded yet."""
        self.write(config_text(**{"port": self.port, **settings}))


def config_text(
    port: int = 0,
    workers: int = 2,
    drain: float = 5,
    instance: str = "a",
    listen: tuple[str, ...] = (),
    extra: str = "",
    hang: float = 10,
    prepare: float = 5,
) -> str:
    """A configuration of one instance, and what else it is to say at its end; no server is ever asked."""
    addresses = ", ".join(f'"{address}"' for address in (f"127.0.0.1:{port}", *listen))
    return f"""[proxy]
workers = {workers}
drain_timeout_s = {drain}
prepare_timeout_s = {prepare}
hang_timeout_s = {hang}

[[instance]]
name = "{instance}"
protocol = "redis"
listen = [{addresses}]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:6379:1 a"]
{extra}"""


class Client:
    """A blocking client of the stand-in; see `connect`."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.stream = self.sock.makefile("rwb")

    def send(self, line: str = "hello") -> None:
        """Asks."""
        self.stream.write(line.encode() + b"\n")
        self.stream.flush()

    def wait_for_file(self, fleet: StandInFleet, path: Path | str) -> None:
        """Asks what is answered when there is such a file. The worker has read it, so it is idle no more."""
        self.send(f"wait {path}")
        fleet.wait_log(f"standin.waits path={path} ")

    def receive(self) -> list[str]:
        """slot, pid, drain timeout, instance; empty at the end of the connection."""
        return self.stream.readline().decode().split()

    def ask(self) -> list[str]:
        """Both."""
        self.send()
        return self.receive()

    def close(self) -> None:
        """Hangs up."""
        self.stream.close()
        self.sock.close()


def ask(port: int) -> list[str]:
    """Asks on a connection of its own."""
    client = Client(port)
    try:
        return client.ask()
    finally:
        client.close()


def ctl(fleet: StandInFleet, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs hyper-proxy ctl."""
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl", "--admin", f"127.0.0.1:{fleet.admin_port}", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """`connect(fleet)`: a client, closed at the test's end."""
    clients: list[Client] = []

    def open_client(fleet: StandInFleet) -> Client:
        clients.append(Client(fleet.port))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


@pytest.fixture
def start_standin(tmp_path: Path) -> Iterator[StartStandIn]:
    """`start_standin(workers=1, ...)`: a ready fleet of the stand-in, stopped at the test's end."""
    fleets: list[StandInFleet] = []

    def start(ready: bool = True, **settings: Any) -> StandInFleet:
        port = free_port()
        fleet = StandInFleet(tmp_path, port, config_text(**{"port": port, **settings}), ready)
        fleets.append(fleet)
        return fleet

    yield start
    for fleet in fleets:
        fleet.stop()
