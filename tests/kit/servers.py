"""Real storage servers, and twemproxy, on free ports: started, frozen, killed and stopped by pid."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kit.ports import accepts, free_port
from tests.kit.wait import wait_for

PACKAGES = {
    "redis-server": "redis-server", "memcached": "memcached", "nutcracker": "nutcracker",
    "mariadbd": "mariadb-server-core",
}  # fmt: skip

# setpriv becomes the program: the kernel ends it when the test process ends in whatever way.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Running:
    """A server process that answers on 127.0.0.1:port, and on a unix socket when `path` is not empty.

    It has a session of its own, as an init system starts a service, and as a Fleet has: Linux shares out busy cores by
    sessions first (sched_autogroup), so that what is measured side by side must not be in one session and in several.
    """

    def __init__(self, command: list[str], port: int, path: str = "") -> None:
        program = shutil.which(command[0])
        if program is None:
            raise FileNotFoundError(f"{command[0]} is missing: apt-get install {PACKAGES[command[0]]}")
        self.command = [*DIES_WITH_US, program, *command[1:]]
        self.port = port
        self.path = path
        self.start()

    @property
    def address(self) -> str:
        """As it stands in a `servers` list."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        return self.process.pid

    def start(self) -> None:
        """Start it (again, on the same port) and wait until it accepts."""
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_for(self.answers, f"{self.command[len(DIES_WITH_US)]} accepts on port {self.port}")

    def answers(self) -> bool:
        """Does it accept? AssertionError when it has ended instead."""
        assert self.process.poll() is None, f"{' '.join(self.command)} ended with {self.process.returncode}"
        return accepts(self.port) and (not self.path or Path(self.path).exists())

    def freeze(self) -> None:
        """SIGSTOP, until all of it stands: it accepts connections and never answers."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.pid}/task")
        wait_for(lambda: all(") T " in (task / "stat").read_text() for task in tasks.iterdir()), "it stands still")

    def thaw(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: its connections are reset, its port refuses."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in good order, frozen or not."""
        if self.process.poll() is None:
            self.process.terminate()
            self.thaw()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()

    def ask(self, request: bytes, enough: bytes = b"\n") -> bytes:
        """Send raw bytes on a new connection and read until `enough` was seen."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as sock:
            sock.sendall(request)
            reply = b""
            while enough not in reply:
                data = sock.recv(65536)
                assert data, f"closed after {reply!r}"
                reply += data
            return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


def redis_server(*options: str, path: str = "") -> Running:
    """A redis-server that keeps everything in memory; `path`: listens on this unix socket too."""
    port = free_port()
    unix = ["--unixsocket", path] if path else []
    in_memory = ["--save", "", "--appendonly", "no", "--dir", tempfile.gettempdir()]
    in_memory += ["--dbfilename", f"redis-{os.getpid()}-{port}.rdb"]  # one that replication leaves is nobody's
    in_memory += ["--repl-diskless-load", "on-empty-db"]  # and a replica leaves none
    listen = ["--port", str(port), "--bind", "127.0.0.1", *unix]
    return Running(["redis-server", *listen, *in_memory, *options], port, path)


def memcached(*options: str) -> Running:
    """A memcached with one thread and 64 MB."""
    port = free_port()
    user = ["-u", "root"] if os.geteuid() == 0 else []
    return Running(["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1", *user, *options], port)


def nutcracker(pools: str, folder: Path) -> Running:
    """A twemproxy with these pools (YAML); `{port}` in it becomes the port on which it is reached."""
    port, stats = free_port(), free_port()
    file = folder / f"nutcracker-{port}.yml"
    file.write_text(pools.replace("{port}", str(port)))
    return Running(["nutcracker", "-c", str(file), "-s", str(stats), "-a", "127.0.0.1", "-v", "0"], port)


def flush_redis(server: Running) -> None:
    """Empty it."""
    assert server.ask(b"FLUSHALL\r\n") == b"+OK\r\n"


def flush_memcached(server: Running) -> None:
    """Empty it."""
    assert server.ask(b"flush_all\r\n") == b"OK\r\n"
