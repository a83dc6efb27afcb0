"""A whole proxy: `hyper-proxy serve` as a process group of its own, talked to as an operator would.

    with Fleet(config, folder) as fleet:
        redis.Redis(port=port).get("x")
        fleet.write(other_config)
        assert fleet.reload().accepted
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from tests.kit.ports import free_port
from tests.kit.wait import wait_for

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "import sys; from hyper_proxy.cli.main import main; sys.exit(main())"]
ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")  # becomes the program; a test process that is killed leaves no fleet
READY_S = 40.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reload came to."""

    accepted: bool
    status: int
    body: dict[str, Any]


def whole_lines(log: Path) -> str:
    """A log so far, without a line that is just being written: who reads meanwhile sees it up to the end of a page."""
    text = log.read_text(errors="replace")
    return text[: text.rfind("\n") + 1]


def words_of(process: psutil.Process) -> str:
    """Its title or command line; "" when it has just ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


class Fleet:
    """A running proxy; [admin] is added to the configuration, on a free port, when it has none."""

    def __init__(
        self,
        config: str,
        folder: Path,
        env: dict[str, str] | None = None,
        ready: bool = True,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.admin_port = free_port()
        self.file = folder / f"fleet-{self.admin_port}.toml"
        self.log = folder / f"fleet-{self.admin_port}.log"
        self.write(config)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
        serve = [*ENDS_WITH_US, *command, "serve", "-c", str(self.file)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                serve, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        if ready:
            try:
                wait_for(self.is_ready, "the fleet is ready", READY_S)
            except BaseException:
                self.destroy()
                raise

    def write(self, config: str) -> None:
        """Replace the configuration file; nothing is reloaded yet."""
        has_admin = re.search(r"^ *\[admin\]", config, re.MULTILINE)
        admin = "" if has_admin else f'\n[admin]\nlisten = "127.0.0.1:{self.admin_port}"\n'
        self.file.write_text(config + admin)

    def is_ready(self) -> bool:
        """GET /health/ready says 200; AssertionError with the log when the master has ended."""
        assert self.process.poll() is None, f"serve ended with {self.process.returncode}:\n{self.read_log()}"
        with suppress(OSError, HTTPException):
            return self.http("GET", "/health/ready")[0] == 200
        return False

    def http(self, method: str, path: str, timeout_s: float = 30.0) -> tuple[int, bytes]:
        """Ask the sidecar: status and body."""
        connection = HTTPConnection("127.0.0.1", self.admin_port, timeout=timeout_s)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post(self, path: str, body: dict[str, object], token: str = "") -> tuple[int, dict[str, Any]]:
        """Order the sidecar something, as JSON: status and answer."""
        connection = HTTPConnection("127.0.0.1", self.admin_port, timeout=30)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        """GET /stats."""
        status, body = self.http("GET", "/stats")
        assert status == 200, body
        answer: dict[str, Any] = json.loads(body)
        return answer

    def reload(self) -> Verdict:
        """POST /reload, and its verdict."""
        status, body = self.http("POST", "/reload")
        return Verdict(status == 200, status, json.loads(body))

    def send_signal(self, number: int) -> None:
        """To the master."""
        self.process.send_signal(number)

    def hup(self) -> None:
        """Reload as `kill -HUP` does; the verdict is in the log and in /stats."""
        self.send_signal(signal.SIGHUP)

    def worker_pids(self) -> list[int]:
        """By slot."""
        return [worker["pid"] for worker in sorted(self.stats()["workers"], key=lambda row: row["slot"])]

    def kill_worker(self, slot: int = 0, number: int = signal.SIGKILL) -> int:
        """Send a signal to one worker; the result is its pid."""
        pid = wait_for(lambda: self.worker_pids()[slot], f"a worker in slot {slot}")
        os.kill(pid, number)
        return pid

    def tree(self) -> list[psutil.Process]:
        """The master and everything below it."""
        master = psutil.Process(self.process.pid)
        return [master, *master.children(recursive=True)]

    def sidecar(self) -> psutil.Process:
        """The one that answers now."""
        return next(process for process in self.tree() if words_of(process).startswith("hyper-proxy: sidecar"))

    def open_files(self) -> list[Path]:
        """Of all its processes; one that has just ended has none."""
        found: list[Path] = []
        for process in self.tree():
            with suppress(psutil.NoSuchProcess):
                found += [Path(file.path) for file in process.open_files()]
        return found

    def read_log(self) -> str:
        """What it wrote to standard error so far."""
        return whole_lines(self.log)

    def log_contains(self, text: str) -> bool:
        """Has it written this?"""
        return text in self.read_log()

    def wait_log(self, text: str, timeout_s: float = 20.0) -> None:
        """Wait until it has written this."""
        wait_for(lambda: self.log_contains(text), f"{text!r} in the log", timeout_s)

    def stop(self, timeout_s: float = 20.0) -> int:
        """TERM, wait; the result is the master's exit status."""
        if self.process.poll() is None:
            self.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        finally:
            self.destroy()

    def destroy(self) -> None:
        """SIGKILL to whatever is left of the process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if kind is not None:
            print(f"--- log of the fleet\n{self.read_log()[-8000:]}", file=sys.stderr)
        self.stop()
