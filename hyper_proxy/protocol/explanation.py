"""What `hyper-proxy explain` finds out about one request, whatever its protocol: where its keys are, and what is sent.

The files explain.py of the protocols fill these records from the tables and the placement that serve real requests.
Nothing here is used on a request's path, and nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.errors import ClientError, HyperProxyError
from hyper_proxy.config.kinds import PLACED
from hyper_proxy.config.model import Instance, Level, Server
from hyper_proxy.config.routes import home_pools, spots
from hyper_proxy.config.table_split import day_of_key, home_at, homes_of, server_at, table_of
from hyper_proxy.hashing import DISTRIBUTIONS, Placement
from hyper_proxy.hashing.distributions.modula import Random
from hyper_proxy.hashing.lushan import db_rule
from hyper_proxy.hashing.routes.build import build_level
from hyper_proxy.storage.dry_run import DryRun
from hyper_proxy.storage.keyvalue import LEVELED
from hyper_proxy.storage.lushan import key_there


class BadQuestion(HyperProxyError):
    """There is no such instance or command, or the request has not the form that the command asks for."""

    kind = "usage"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a level has a key. `shard` and `server` are None where chance decides.

    route         what may become of a request for it, where a route leads to several servers; which table has it,
                  where there are many; else ""
    pool          where there are several: that of the server, and which of its servers that is; else ""
    distribution  None where keys are not distributed
    hashed        the part of the key that is hashed
    hash          the hash function, None where the distribution has one of its own, or none
    hash_value    its value, None where no hash is used
    db            the number of the database there, None where there is none
    sent          the key as it is sent
    """

    level: int
    storage: str
    shard: int | None
    server: Server | None
    route: str
    distribution: str | None
    hashed: bytes
    hash: str | None
    hash_value: int | None
    db: int | None
    sent: bytes
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the request and its places, one for each level."""

    key: bytes
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to one server; `words` are what it reads. shard and server are None where chance decides; `route`: who
    else may get it, or instead, as in Place."""

    shard: int | None
    server: Server | None
    words: tuple[bytes, ...]
    route: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the command table says. `allow`: the name by which instances allow the command, "" when they need not;
    `allowed`: does this one?
    """

    name: str
    klass: str
    treatment: str
    reduce: str = ""
    allow: str = ""
    allowed: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """`way`: what is done and why, in words. `error`: what the client reads when the request is not served, else ""."""

    way: str
    sent: tuple[Sent, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one request."""

    instance: Instance
    request: tuple[bytes, ...]
    facts: Facts
    keys: tuple[Key, ...]
    outcome: Outcome


class Ground:
    """A level of an instance, as far as it decides where keys go; by default the last one, which decides the rest.
    reads: does the request only read, over connections that clients share?"""

    def __init__(self, instance: Instance, reads: bool, number: int = 0) -> None:
        self.instance = instance
        self.reads = reads
        self.number = number or len(instance.levels)
        self.level: Level = instance.levels[self.number - 1]
        level = self.level
        self.spots = spots(level)
        self.placement: Placement | None = build_level(level) if level.storage in PLACED else None
        self.distribution = level.distribution if self.placement else None
        if level.topology == "cluster":
            self.distribution = "redis_cluster"
        default = DISTRIBUTIONS[(self.distribution or level.distribution).partition("-")[0]].hash
        # A distribution without a default ignores what the configuration says.
        self.hash = (level.hash or default) if self.placement and default else None
        # Is a request answered from a key space of the proxy's own making, and not sent on?
        self.is_translated = not instance.forwards
        self.by_chance = isinstance(self.placement, Random) and len(self.spots) > 1

    @property
    def own_way(self) -> str:
        """What becomes of a request that is not sent on."""
        if self.number > 1:
            above = enumerate(self.instance.levels[:-1], 1)
            policies = "; ".join(policy(at, level, self.reads) for at, level in above)
            if self.reads:
                read = f"the {self.number} levels are asked from the first on, and what is found below is kept above"
                return f"{read}; {policies}; at the last level {self._own_way}"
            return f"it is done below, where {self._own_way}; {policies}"
        return f"no server is asked: {self._own_way}" if self.placement is None else self._own_way

    def dry_runs(self) -> tuple[DryRun, DryRun]:
        """The key space below all levels, for who would refuse: with no key in it, and with every one."""
        place = LEVELED if self.number > 1 else ""
        return DryRun(self.level, place, self.shard, False), DryRun(self.level, place, self.shard, True)

    @property
    def _own_way(self) -> str:
        if self.placement is None:
            return f"the request becomes operations on the {self.level.storage} file"
        table = f"statements on table {self.level.table.label}" if self.level.table else ""
        late = f"; while one lags more than {self.level.max_lag_s:g} s, reads go to its writer"
        where = f"at the servers of its keys{late if self.level.max_lag_s else ''}"
        return f"the request becomes {table or f'commands of {self.level.storage}'} {where}"

    def shard(self, key: bytes) -> int | None:
        """The shard of a key; None when it is drawn anew for every request."""
        if self.placement is None:
            return 0 if self.spots else None  # none: a level of copies in the worker
        return None if self.by_chance else self.placement.locate(key, 0, len(key))

    def server(self, shard: int | None) -> Server | None:
        """The server of a shard."""
        if shard is None or self.level.is_found_out:
            return None
        spot = self.spots[shard]
        return spot.reader if self.reads else spot.server

    @property
    def homes(self) -> tuple[Server, ...]:
        """Those that have every key, all together, in the order in which they are counted and walked; the spots of
        servers that are found out."""
        if self.level.is_found_out or self.level.route is None:
            return tuple(spot.server for spot in self.spots)
        pools = self.level.pool_levels()
        return tuple(server for name in home_pools(self.level.route) for server in pools[name].servers)

    def place(self, key: bytes, *, sent: bytes) -> Place:
        """Where a key is, and what is sent for it. Raises ClientError where the last level has no place for it."""
        shard = self.shard(key)
        db, there = self._there(key, sent)
        hashed, value = key, None
        if self.placement is not None:
            facts: dict[str, Any] = self.placement.explain(key)
            hashed, value = facts["hashed"], facts["hash"]
        route = "" if shard is None else self.spots[shard].route or self._table(shard, key)
        how = (route, self.distribution, hashed, self.hash, value)
        server = self._server_of(shard, key)
        return Place(self.number, self.level.storage, shard, server, *how, db, there, self._pool_of(server))

    def _there(self, key: bytes, sent: bytes) -> tuple[int | None, bytes]:
        """The number of the database, and the key as it is called there."""
        if self.level.lushan_db is None:
            return (self.level.db if self.level.storage == "redis" else None), sent
        try:
            db = db_rule(self.level.lushan_db)(key)
        except ClientError:
            if self.number == len(self.instance.levels):
                raise
            return None, sent  # it is not asked there
        return db, key_there(db, sent)

    def _server_of(self, shard: int | None, key: bytes) -> Server | None:
        """That of a key, where its date may lead to other servers."""
        if shard is None or not self.level.years:
            return self.server(shard)
        try:
            home = homes_of(self.level)[home_at(self.level, day_of_key(self.level, key))]
        except ClientError:
            return None
        return home.servers[server_at(self.level, shard, home)]

    def _pool_of(self, server: Server | None) -> str:
        """Where a route has several pools: which one it is in, and the how manieth there; the shards of a level are
        numbered over all of them."""
        for name, pool in self.level.pool_levels().items() if self.level.route else ():
            if server in pool.servers:
                return f"number {pool.servers.index(server)} of pool {name}"
        return ""

    def _table(self, shard: int, key: bytes) -> str:
        """Which of many tables has the key."""
        try:
            table = table_of(self.level, shard, key)
        except ClientError as error:
            return str(error)
        return f"table {table.label}" if table else ""

    def places(self, key: bytes, *, sent: bytes) -> tuple[Place, ...]:
        """The same for every level, from the first to this one; `sent` is of this one."""
        above = [Ground(self.instance, self.reads, number).place(key, sent=key) for number in range(1, self.number)]
        return (*above, self.place(key, sent=sent))

    def to(self, shard: int | None, words: Iterable[bytes]) -> Sent:
        """A request to a shard."""
        server = self.server(shard)
        return Sent(shard, server, tuple(words), self.spots[shard].route if shard is not None and server else "")

    @property
    def receivers(self) -> str:
        """Who gets what is for all."""
        route = self.level.route
        if route is None or not self.reads:
            return "every server"
        pools = home_pools(route)
        return f"every server of pool{'s' if len(pools) > 1 else ''} {', '.join(pools)}"

    def to_all(self, words: Sequence[bytes]) -> tuple[Sent, ...]:
        """The same request to every server, or to those that have every key where it reads."""
        servers = self.level.all_servers if self.level.is_found_out or not self.reads else self.homes
        return tuple(Sent(shard, server, tuple(words)) for shard, server in enumerate(servers))

    def to_home(self, index: int, words: Sequence[bytes]) -> Sent:
        """A request to one of the homes."""
        return Sent(index, None if self.level.is_found_out else self.homes[index], tuple(words))

    def split(self, keys: Sequence[bytes]) -> dict[int | None, list[int]]:
        """The indexes of the keys by shard, in the order in which the shards are met."""
        parts: dict[int | None, list[int]] = {}
        for index, key in enumerate(keys):
            parts.setdefault(self.shard(key), []).append(index)
        return parts


WRITES = {
    "invalidate": "a write takes its copy away",
    "through": "a write puts the new value there",
    "around": "a write leaves its copy until that ends",
    "behind": "a write puts the new value there, and is answered before it is below",
}


def policy(number: int, level: Level, reads: bool) -> str:
    """What the configuration says of a level above another: of reads, or writes, and how long it is waited for."""
    said = [
        "what it lacks is asked below" if level.on_miss == "next" else "what it lacks is a miss",
        "when it fails the next one is asked" if level.on_error == "next" else "when it fails the client is told",
    ]
    if not reads:
        said = ["it is filled by others" if level.read_only or level.storage == "lushan" else WRITES[level.write]]
    if level.optional:
        said.append(f"it is passed by after {level.deadline_ms} ms")
    return f"level {number} ({level.storage}): {', '.join(said)}"
