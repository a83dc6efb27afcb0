"""Which keys must go where: the homes before and after, as the fleet places them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from enum import Enum

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.load import load
from hyper_proxy.config.model import Level, Server
from hyper_proxy.config.notes import no_instance
from hyper_proxy.conn_pool.moving.schedule import Schedule, homes_at
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.routes.build import build_level

LOOK_S = 0.5


class BadOrder(HyperProxyError):
    """It can't be done with this instance."""


class WatchedFile:
    """The configuration: who changes the route must not find a tool that still goes by the old one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.state = self._state()
        self.look_at = 0.0

    def is_new(self) -> bool:
        """Has it changed? Looks at most every LOOK_S."""
        now = time.monotonic()
        if now < self.look_at:
            return False
        self.look_at = now + LOOK_S
        return self._state() != self.state

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self.file)
        except OSError:  # whoever loads it says why; one that goes away has changed
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class Where(Enum):
    """What a key is at the server that has it."""

    HOME = "it is where it belongs"
    LEFT = "it has still to be moved"
    STRAY = "its server is neither its old home nor its new one: nobody has seen it for a while"


@dataclass(frozen=True, slots=True)
class Side:
    """A pool."""

    name: str
    servers: tuple[Server, ...]
    placement: Placement

    def home(self, key: bytes) -> Server:
        """The server of a key."""
        return self.servers[self.placement.locate(key, 0, len(key))]


@dataclass(frozen=True, slots=True)
class Plan:
    """Keys go from `source` to `target`; stage: see Schedule. dbs: the databases of clients, as servers number them."""

    file: WatchedFile
    instance: str
    level: Level
    schedule: Schedule
    stage: int
    source: Side
    target: Side
    dbs: range

    @property
    def servers(self) -> list[Server]:
        """All, each once."""
        return list({server.address: server for side in (self.source, self.target) for server in side.servers}.values())

    def check(self) -> None:
        """Raises BadOrder when keys should not be moved so any more."""
        if self.schedule.ahead() != self.stage:
            raise BadOrder("the keys go back from now on: run it again")
        if self.file.is_new():
            raise BadOrder(f"{self.file.file} has changed, and may say something else of the keys: run it again")

    def where(self, server: Server, key: bytes) -> tuple[Where, Server]:
        """What a key is at a server, and the server where it belongs."""
        home = self.target.home(key)
        if home.address == server.address:
            return Where.HOME, home
        return (Where.LEFT if self.source.home(key).address == server.address else Where.STRAY), home

    def comes_to_light(self, server: Server, key: bytes) -> bool:
        """Is it at a server where nobody looks for it before the move, and everybody afterwards?"""
        return self.source.home(key).address != server.address and self.target.home(key).address == server.address


def plan_of(file: str, name: str) -> Plan:
    """Of an instance whose keys move just now, or will. Raises BadOrder, ConfigError."""
    watched = WatchedFile(file)
    config = load(file)
    instance = config.instance(name)
    if instance is None:
        raise BadOrder(no_instance(name, [one.name for one in config.instances]))
    level = instance.levels[-1]
    schedule = Schedule.of(level)
    if schedule is None or level.route is None:
        raise BadOrder(f"the keys of '{name}' do not move: its level has no route `move` (docs/resharding.md)")
    if schedule.hold_left():
        time.sleep(schedule.hold_left())
    stage = schedule.ahead()
    levels = level.pool_levels()
    pools = [levels[child.pool] for child in level.route.children]
    names = [child.pool for child in level.route.children]
    sides = [Side(name, pool.servers, build_level(pool)) for name, pool in zip(names, pools, strict=True)]
    source, target = homes_at(stage or 1)
    dbs = range(level.db, level.db + instance.databases)
    return Plan(watched, name, level, schedule, stage, sides[source], sides[target], dbs)
