"""hyper-proxy demo [--once]: a fleet on embedded storage, with nothing to install and nothing to configure.

The fleet is `hyper-proxy serve` with a configuration that this writes into a temporary folder, where the data is
too; both go when it ends. The default ports are used when they are free, else others.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hyper_proxy.cli.demo_checks import run_checks
from hyper_proxy.cli.interrupt import by_ctrl_c_and_term
from hyper_proxy.common.errors import HyperProxyError

HOST = "127.0.0.1"
DEFAULT_PORTS = (6380, 11311, 22122)  # redis, memcache, the sidecar: those of `serve` without a configuration
WORKERS = 2  # enough to show that they share their data
READY_S = 30.0
STOP_S = 15.0
POLL_S = 0.05
LOG_TAIL_BYTES = 4000

CONFIG = """\
# Written by `hyper-proxy demo`: two fronts, redis and memcache, over one key space in one file.
[proxy]
workers = {workers}
[admin]
listen = "{host}:{admin}"

[[instance]]
name = "redis"
protocol = "redis"
listen = ["{host}:{redis}"]
allow = ["KEYS", "FLUSHALL", "FLUSHDB"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["demo.db"]
  timeout = {{ read_ms = 2000, queue_ms = 2000 }}

[[instance]]
name = "memcache"
protocol = "memcache"
listen = ["{host}:{memcache}"]
allow = ["flush_all"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["demo.db"]
  timeout = {{ read_ms = 2000, queue_ms = 2000 }}
"""

WELCOME = """\
A fleet of {workers} workers serves one key space on two fronts. In another terminal, for example:

  redis-cli -p {redis} set greeting hello ex 600
  redis-cli -p {redis} mget greeting nothing
  printf 'get greeting\\r\\nset hits 0 0 1\\r\\n1\\r\\nincr hits 1\\r\\nquit\\r\\n' | curl -s telnet://{host}:{memcache}
  redis-cli -p {redis} get hits
  curl http://{host}:{admin}/stats

Its configuration: {config}
Ctrl-C ends it, and its data goes."""


class DemoFailed(HyperProxyError):
    """The fleet did not start, or answered wrongly."""

    kind = "demo"


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the demo listens."""

    redis: int
    memcache: int
    admin: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[--once]"""
    parser.add_argument("--once", action="store_true", help="ask it with real clients, stop it, 0 if all was right")


def run(arguments: argparse.Namespace) -> int:
    """0 when all was right; raises DemoFailed."""
    by_ctrl_c_and_term()
    ports = Ports(*choose_ports(DEFAULT_PORTS))
    with tempfile.TemporaryDirectory(prefix="hyper_proxy-demo-") as name:
        file = Path(name) / "demo.toml"
        values = {"host": HOST, "workers": WORKERS, **asdict(ports)}
        file.write_text(CONFIG.format(**values))
        with fleet(file, ports.admin) as process:
            if arguments.once:
                return 0 if run_checks(HOST, ports.redis, ports.memcache, ports.admin) else 1
            print(WELCOME.format(config=file, **values), flush=True)
            with suppress(KeyboardInterrupt):
                raise DemoFailed(f"the fleet ended with status {process.wait()}\n{_tail(file)}")
    return 0


def choose_ports(wanted: tuple[int, ...]) -> list[int]:
    """The wanted ports where nobody listens, else free ones."""
    with ExitStack() as held:  # all at once, so that the free ones differ
        return [_hold(port, held) for port in wanted]


def _hold(port: int, held: ExitStack) -> int:
    sock = held.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.bind((HOST, 0))
    return int(sock.getsockname()[1])


@contextmanager
def fleet(file: Path, admin: int) -> Iterator[subprocess.Popen[bytes]]:
    """`hyper-proxy serve` with this configuration while the block runs, its log beside the file. Raises DemoFailed."""
    command = [sys.executable, "-m", "hyper_proxy.cli.main", "serve", "-c", str(file)]
    # A session of its own: Ctrl-C then reaches this process only, which stops the fleet in order.
    with _log_file(file).open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        _await_ready(process, admin, file)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await_ready(process: subprocess.Popen[bytes], admin: int, file: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not _is_ready(admin):
        if process.poll() is not None:
            raise DemoFailed(f"the fleet ended with status {process.returncode}\n{_tail(file)}")
        if time.monotonic() > deadline:
            raise DemoFailed(f"the fleet is not ready after {READY_S:g} s\n{_tail(file)}")
        time.sleep(POLL_S)


def _is_ready(admin: int) -> bool:
    with closing(http.client.HTTPConnection(HOST, admin, timeout=1)) as connection:
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _log_file(file: Path) -> Path:
    return file.with_suffix(".log")


def _tail(file: Path) -> str:
    return _log_file(file).read_text(errors="replace")[-LOG_TAIL_BYTES:]
