"""The records a configuration consists of: frozen, checked, complete (every default is filled in).

They say what was written, in the units of their names; nothing here starts, resolves or opens anything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

from hyper_proxy.config.endpoints import OUT_OF_SERVICE as OUT_OF_SERVICE
from hyper_proxy.config.endpoints import Listen as Listen
from hyper_proxy.config.endpoints import Server as Server
from hyper_proxy.config.endpoints import bound_address as bound_address
from hyper_proxy.config.endpoints import format_address as format_address
from hyper_proxy.config.lushan_model import LushanDb as LushanDb
from hyper_proxy.config.lushan_model import LushanFixed as LushanFixed
from hyper_proxy.config.lushan_model import LushanHashed as LushanHashed
from hyper_proxy.config.lushan_model import LushanPrefixed as LushanPrefixed
from hyper_proxy.config.rooms import USUAL_ROOMS
from hyper_proxy.config.rooms import Rooms as Rooms
from hyper_proxy.config.table_model import Heartbeat as Heartbeat
from hyper_proxy.config.table_model import IdDate as IdDate
from hyper_proxy.config.table_model import Table as Table

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

@dataclass(frozen=True, slots=True)
class Era:
    """Years, both included, whose rows are at other servers than those of the level."""

    first: int
    last: int
    servers: tuple[Server, ...]
    writers: tuple[Server, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeout:
    """Deadlines towards one server, in milliseconds, each counted apart.

    connect_ms  to open a connection; AUTH and SELECT then have read_ms
    read_ms     from the moment a request was sent; only this one counts against the server
    queue_ms    that a request may wait in the proxy before it is sent
    """

    connect_ms: int = 50
    read_ms: int = 200
    queue_ms: int = 200


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pause before a lost server is dialled again: doubles from base to max, with jitter; milliseconds."""

    base_ms: int = 50
    max_ms: int = 5000


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


FOUND_OUT = 64
"""Servers that a level is taken to find out beside those that are listed, where it does that."""
MAIN = "main"
"""The name under which routes know a level's own `servers`."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Further servers of a level, over which all keys can be spread as over its own.

    `distribution` "" takes the level's, and its hash with it.
    """

    name: str
    servers: tuple[Server, ...]
    hash: str = ""
    distribution: str = ""
    peers: tuple[Server, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """A node of the tree that says where a request goes: a `pool`, or a kind of config/routes.py with its `children`.

    `names` are those of the children, where they have some; `options` are complete.
    """

    kind: str
    children: tuple[Route, ...] = ()
    pool: str = ""
    names: tuple[str, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    def option(self, name: str) -> Any:
        """The value of an option of this kind."""
        return dict(self.options)[name]

    @property
    def pools(self) -> frozenset[str]:
        """The names of all pools below."""
        if self.kind == "pool":
            return frozenset((self.pool,))
        return frozenset[str]().union(*(child.pools for child in self.children))


@dataclass(frozen=True, slots=True)
class Level:
    """One level of storage: the servers over which keys are spread, and how to talk to them.

    `hash` "" is the distribution's own.
    `peers` are the servers of the second room, node by node; empty where there is one room.
    `db` is what a client's database 0 is called at the servers; a client's database n is db + n there.
    `max_pending_bytes` bounds what waits for one node in one worker; `max_bytes` what the copies of a local level take.
    `writers` are the servers that take the writes of `servers`, by position; empty where those take both.
    `max_lag_s`: how far one of `servers` may be behind its writer and be read from; 0: nobody asks. `heartbeat`: the
    table that says how far it is; None: the server itself is asked.
    `years`: by the years as they are written, the servers of rows whose keys have such a date.
    `where` are the columns of `table` that have the same value in every row of this key space.
    `route` says which of `pools` and of `servers`, the pool "main", a request goes to; None: to `servers`.
    `topology`: are `servers` those that have the keys, or members of a "cluster" or "sentinel"s that tell of them? Then
    `masters` are the names under which sentinels know the masters, `sentinel_password` is for the sentinels alone, and
    `reads` says where reads go (docs/redis-topologies.md).
    `on_miss`, `on_error`: "next" or "fail". `write`: what a write does to this level above another. A `read_only` level
    is filled by others. An `optional` one has `deadline_ms` for an answer, and is passed by then (docs/levels.md).
    """

    storage: str
    servers: tuple[Server, ...]
    hash: str = ""
    distribution: str = "ketama"
    hash_tag: str = ""
    peers: tuple[Server, ...] = ()
    timeout: Timeout = Timeout()
    backoff: Backoff = Backoff()
    connections: int = 1
    username: str = ""
    password: str = field(default="", repr=False)
    db: int = 0
    max_pending_bytes: int = 16 * MIB
    max_bytes: int = 32 * MIB
    dns_ttl_s: float = 30.0
    lushan_db: LushanDb | None = None
    max_connections: int = 8
    writers: tuple[Server, ...] = ()
    max_lag_s: float = 0
    heartbeat: Heartbeat | None = None
    years: tuple[tuple[str, Era], ...] = ()
    database: str = ""
    table: Table | None = None
    where: tuple[tuple[str, str | int], ...] = ()
    pools: tuple[Pool, ...] = ()
    route: Route | None = None
    topology: str = "servers"
    masters: tuple[str, ...] = ()
    sentinel_username: str = ""
    sentinel_password: str = field(default="", repr=False)
    reads: str = "master"
    on_miss: str = "next"
    on_error: str = "next"
    write: str = "invalidate"
    read_only: bool = False
    optional: bool = False
    deadline_ms: int = 20
    max_behind_bytes: int = 16 * MIB
    rooms: Rooms = USUAL_ROOMS

    @property
    def all_servers(self) -> tuple[Server, ...]:
        """Those of every pool, writers aside."""
        return sum((pool.servers for pool in self.pools), self.servers)

    @property
    def all_peers(self) -> tuple[Server, ...]:
        """The same of the second room."""
        return sum((pool.peers for pool in self.pools), self.peers)

    @property
    def is_mirrored(self) -> bool:
        """Do writes go to two rooms?"""
        return bool(self.all_peers) and self.rooms.writes == "mirror"

    @property
    def everyone(self) -> tuple[Server, ...]:
        """All servers that it names, whatever for; some maybe more than once."""
        eras = [server for _, era in self.years for server in (*era.servers, *era.writers)]
        return (*self.all_servers, *self.all_peers, *self.writers, *eras)

    @property
    def is_found_out(self) -> bool:
        """Are the servers that have the keys others than those that are listed, and do they change?"""
        return self.topology != "servers"

    @property
    def usual_connections(self) -> int:
        """How many a worker may have open to all servers of the level, those of single clients left aside."""
        servers = len(self.everyone) + (FOUND_OUT if self.is_found_out else 0)
        return servers * (self.max_connections if self.table else self.connections)

    def pool_levels(self) -> dict[str, Level]:
        """Each pool by name, as a level that has no other."""
        alone = replace(self, pools=(), route=None)
        levels = {MAIN: alone}
        for pool in self.pools:
            own = replace(alone, hash=pool.hash, distribution=pool.distribution) if pool.distribution else alone
            levels[pool.name] = replace(own, servers=pool.servers, peers=pool.peers)
        return levels


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
