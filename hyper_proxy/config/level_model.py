"""The records of a level: its servers, how keys are spread over them, and how they are talked to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hyper_proxy.config.endpoints import Server
from hyper_proxy.config.lushan_model import LushanDb
from hyper_proxy.config.rooms import USUAL_ROOMS, Rooms
from hyper_proxy.config.sizes import MIB
from hyper_proxy.config.table_model import Heartbeat, Table

FOUND_OUT = 64
"""Servers that a level is taken to find out beside those that are listed, where it does that."""
MAIN = "main"
"""The name under which routes know a level's own `servers`."""


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
