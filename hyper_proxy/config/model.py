"""The records a configuration consists of: frozen, checked, complete (every default is filled in).

They say what was written, in the units of their names; nothing here starts, resolves or opens anything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from hyper_proxy.config.endpoints import OUT_OF_SERVICE as OUT_OF_SERVICE
from hyper_proxy.config.endpoints import Listen as Listen
from hyper_proxy.config.endpoints import Server as Server
from hyper_proxy.config.endpoints import bound_address as bound_address
from hyper_proxy.config.endpoints import format_address as format_address
from hyper_proxy.config.level_model import MAIN as MAIN
from hyper_proxy.config.level_model import Backoff as Backoff
from hyper_proxy.config.level_model import Era as Era
from hyper_proxy.config.level_model import Level as Level
from hyper_proxy.config.level_model import Pool as Pool
from hyper_proxy.config.level_model import Route as Route
from hyper_proxy.config.level_model import Timeout as Timeout
from hyper_proxy.config.lushan_model import LushanDb as LushanDb
from hyper_proxy.config.lushan_model import LushanFixed as LushanFixed
from hyper_proxy.config.lushan_model import LushanHashed as LushanHashed
from hyper_proxy.config.lushan_model import LushanPrefixed as LushanPrefixed
from hyper_proxy.config.rooms import Rooms as Rooms
from hyper_proxy.config.sizes import GIB as GIB
from hyper_proxy.config.sizes import KIB as KIB
from hyper_proxy.config.sizes import MIB as MIB
from hyper_proxy.config.table_model import Heartbeat as Heartbeat
from hyper_proxy.config.table_model import IdDate as IdDate
from hyper_proxy.config.table_model import Table as Table


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may ask for. The defaults depend on the protocol and are in instance_settings.py.

    max_request_bytes  one request that is not whole yet
    max_pipeline       requests of one client that are under way at once; further ones wait unread
    max_clients        connections, per instance and worker
    idle_timeout_s     silence after which a client is closed; 0 means never
    write_timeout_ms   a client that takes no byte of its replies for so long is closed
    """

    max_key_bytes: int
    max_value_bytes: int
    max_arguments: int
    max_request_bytes: int
    max_pipeline: int
    max_clients: int
    max_line_bytes: int
    idle_timeout_s: float
    write_timeout_ms: int


@dataclass(frozen=True, slots=True)
class WriteBack:
    """How long a copy stays in a level above: `ttl` seconds, more or less by the share `jitter` of it; and for how long
    it is kept that there is none, `negative_ttl`, 0: not at all.

    refresh        copies of hot keys are fetched anew before they end
    max_below      reads of one worker that are under way to the last level at once; 0: as many as it has connections
    below_wait_ms  that a read waits for its turn there
    """

    ttl: float = 300.0
    jitter: float = 0.1
    negative_ttl: float = 0.0
    refresh: bool = True
    max_below: int = 0
    below_wait_ms: int = 1000

    @property
    def longest_s(self) -> float:
        """After so long no copy is left."""
        return max(self.ttl, self.negative_ttl, 1.0) * (1 + self.jitter)


FORWARDED = {"redis": ("redis",), "memcache": ("memcache", "lushan")}
"""The storages whose servers speak the protocol of the clients themselves."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One front: a protocol on some addresses, and the storage behind it. `allow` is in upper case."""

    name: str
    protocol: str
    listen: tuple[Listen, ...]
    levels: tuple[Level, ...]
    limits: Limits
    write_back: WriteBack = WriteBack()
    allow: frozenset[str] = frozenset()
    on_partial: str = "error"
    username: str = ""
    password: str = field(default="", repr=False)
    dbs: int = 16

    @property
    def databases(self) -> int:
        """How many databases clients may choose from: a redis cluster has one."""
        return 1 if self.levels[0].topology == "cluster" else self.dbs

    @property
    def forwards(self) -> bool:
        """Do requests go on to the servers as they are? Else they become operations on a key space (docs/levels.md)."""
        return len(self.levels) == 1 and self.levels[0].storage in FORWARDED.get(self.protocol, ())


@dataclass(frozen=True, slots=True)
class Log:
    """Where the log goes, its form, and when its file is rolled; file "" is standard error.

    slow_ms        requests that take as long are recorded; 0: none is
    access_sample  the share of all requests that is logged, 0 to 1
    """

    file: str = ""
    level: str = "info"
    format: str = "text"
    roll: str = "size"
    max_bytes: int = 100 * MIB
    keep: int = 10
    slow_ms: int = 100
    access_sample: float = 0.0


@dataclass(frozen=True, slots=True)
class Plugin:
    """Code of others that the workers load: a file, or an installed package's entry point.

    name    as it is written: the path, or the name of the entry point
    origin  the file, or the file or folder of the package
    digest  of the code, which tells whether it has changed since
    source  of a file: what was checked is what every worker runs, whatever becomes of the file; empty for a package
    """

    name: str
    origin: str
    digest: str
    source: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration. `path` is the file it came from, "" when it is the embedded default."""

    path: str
    workers: int
    scheduling: str
    drain_timeout_s: float
    prepare_timeout_s: float
    hang_timeout_s: float
    upgrade_timeout_s: float
    admin: Listen
    log: Log
    instances: tuple[Instance, ...]
    max_memory: int = 0
    pidfile: str = ""
    user: str = ""
    group: str = ""
    show_keys: bool = False
    admin_token: str = field(default="", repr=False)
    plugins: tuple[Plugin, ...] = ()

    @property
    def worker_count(self) -> int:
        """How many workers run: `workers`, or one for each core this process may use."""
        return self.workers or len(os.sched_getaffinity(0))

    def instance(self, name: str) -> Instance | None:
        """The instance of that name, None when there is none."""
        return next((instance for instance in self.instances if instance.name == name), None)
