"""Keys that move from two servers to three, or back, while clients use them through a fleet."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.front.reshard.writers import Writers
from tests.kit.fleet import COMMAND, ENDS_WITH_US, ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

TIMES = "timeout = { connect_ms = 200, read_ms = 600, queue_ms = 200 }\n  backoff = { base_ms = 20, max_ms = 100 }"
HOLD_S = 2.0  # before a moment, with these
LEAD_S = HOLD_S + 7.5  # a fleet is told of it so long before


class Moving:
    """Servers a and b, and c that is new; a fleet of two workers in front."""

    def __init__(self, stack: ExitStack, folder: Path, options: tuple[str, ...], more: str) -> None:
        self.stack = stack
        self.folder = folder
        self.more = more
        self.servers = []
        for name in "abc":
            home = folder / name
            home.mkdir()
            self.servers.append(stack.enter_context(redis_server(*options, "--dir", str(home))))
        self.port = free_port()
        self.begins = self.back = datetime.fromtimestamp(0, UTC)
        self.fleet = stack.enter_context(Fleet(self.config(""), folder))

    @property
    def new(self) -> Running:
        """The server that is new."""
        return self.servers[2]

    def listed(self, names: str) -> str:
        """Servers as they stand in the file."""
        return ", ".join(f'"{self.servers["abc".index(name)].address} {name}"' for name in names)

    def config(self, route: str, names: str = "ab", port: int = 0) -> str:
        """The configuration with this route, or without one; port: for another fleet on the same servers."""
        pool = f'    [[instance.level.pool]]\n    name = "new"\n    servers = [{self.listed("abc")}]\n' if route else ""
        return (
            '[proxy]\nworkers = 2\ndrain_timeout_s = 3\n'
            '[[instance]]\nname = "shop"\nprotocol = "redis"\nallow = ["FLUSHDB", "KEYS"]\n'
            f'listen = ["127.0.0.1:{port or self.port}"]\n'
            f'  [[instance.level]]\n  storage = "redis"\n  servers = [{self.listed(names)}]\n'
            f'  hash_tag = "{{}}"\n  {TIMES}\n{self.more}' + (f"  route = {route}\n{pool}" if route else "")
        )

    def route(self, later_s: float = 0.0) -> str:
        """The move with its moments; later_s: as a machine has them whose clock is so far behind."""
        back = f", back = {_toml(self.back)}" if self.back > self.begins else ""
        return f'{{ move = "new", of = "main", begins = {_toml(self.begins + timedelta(seconds=later_s))}{back} }}'

    def load(self, text: str) -> None:
        """Another configuration, for all workers."""
        self.fleet.write(text)
        verdict = self.fleet.reload()
        assert verdict.accepted, verdict

    def announce(self, seconds: float = LEAD_S) -> None:
        """Tell the fleet when the move begins."""
        self.begins = datetime.now(UTC) + timedelta(seconds=seconds)
        self.load(self.config(self.route()))

    def announce_back(self) -> None:
        """Tell it when the keys go back."""
        self.back = max(datetime.now(UTC) + timedelta(seconds=LEAD_S), self.begins + timedelta(seconds=10))
        self.load(self.config(self.route()))

    def wait_until(self, moment: datetime) -> None:
        """Until the hold around it is over."""
        left = (moment - datetime.now(UTC)).total_seconds()
        wait_for(lambda: datetime.now(UTC) > moment + timedelta(seconds=0.5), "the moment is over", left + 5)

    def begin(self) -> None:
        """Announce it, and wait until keys move."""
        self.announce()
        self.wait_until(self.begins)

    def client(self, **options: Any) -> Any:
        """Of the proxy."""
        return self.stack.enter_context(redis.Redis(port=self.port, socket_timeout=20, **options))

    def to(self, server: Running, **options: Any) -> Any:
        """Of a server."""
        return self.stack.enter_context(redis.Redis(port=server.port, socket_timeout=20, **options))

    def kept(self) -> list[set[bytes]]:
        """The keys of each server."""
        return [set(self.to(server).scan_iter(count=5000)) for server in self.servers]

    def writers(self, count: int) -> Writers:
        """Clients that write, and know what must be read; they end with the test at the latest."""
        return self.stack.enter_context(Writers(self.port, count))

    def tool(self, *words: str) -> subprocess.Popen[str]:
        """`hyper-proxy reshard`, begun."""
        command = [*ENDS_WITH_US, *COMMAND, "reshard", "-c", str(self.fleet.file), *words, "shop"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.stack.callback(process.kill)
        return process

    def reshard(self, *words: str) -> tuple[int, str]:
        """The same, to its end: its status, and what it wrote."""
        process = self.tool(*words)
        text, _ = process.communicate(timeout=100)
        return process.returncode, text


def _toml(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[Callable[..., Moving]]:
    """`moving(*options, more="")`: options are those of the servers, more are lines of the level."""
    with ExitStack() as stack:
        yield lambda *options, more="": Moving(stack, tmp_path, options, more)
