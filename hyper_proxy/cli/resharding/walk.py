"""A walk over all keys of some servers: those that must move are moved in batches, not faster than is allowed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hyper_proxy.cli.resharding.plan import Plan, Where
from hyper_proxy.cli.resharding.server import Connection, Refused
from hyper_proxy.config.model import Server
from hyper_proxy.conn_pool.moving.mover import Outcome
from hyper_proxy.conn_pool.moving.schedule import AFTER_S
from hyper_proxy.storage.redis_mover import RedisMover
from hyper_proxy.storage.redis_words import encode

PAGE = 500  # keys that a server is asked to look at in one step
BATCH_KEYS = 64
BATCH_BYTES = 1 << 20  # a server does nothing else while it hands over a batch
TRIES = 8
FIRST_PAUSE_S = 0.25
SHOWN = 3  # examples of keys

Pause = Callable[[float], None]


@dataclass(slots=True)
class Pace:
    """keys_s, bytes_s: the most that is moved in a second; 0 is no bound. pause: sleeps, or ends the walk."""

    keys_s: float
    bytes_s: float
    pause: Pause
    free_at: float = 0.0

    def spend(self, keys: int, size: int) -> None:
        """Wait until what was moved before this has had its time."""
        now = time.monotonic()
        if self.free_at > now:
            self.pause(self.free_at - now)
        cost = max(keys / self.keys_s if self.keys_s else 0.0, size / self.bytes_s if self.bytes_s else 0.0)
        self.free_at = max(self.free_at, now) + cost


@dataclass(slots=True)
class Tally:
    """What was seen so far. examples: some keys of each kind, with the label of the server."""

    looked: int = 0
    moved: int = 0
    size: int = 0
    total: int = 0
    seen: Counter[Where] = field(default_factory=Counter)
    to_light: int = 0
    examples: dict[Where, list[str]] = field(default_factory=dict)
    server: str = ""

    def note(self, where: Where, server: Server, key: bytes) -> None:
        """One key at a server."""
        self.looked += 1
        self.seen[where] += 1
        shown = self.examples.setdefault(where, [])
        if len(shown) < SHOWN:
            shown.append(f"{key.decode(errors='backslashreplace')} at {server.label}")


class Walk:
    """Over `servers` of a plan. told: called now and then; it may raise to end the walk between two steps."""

    def __init__(self, plan: Plan, pace: Pace, timeout_ms: int, told: Callable[[Tally], None]) -> None:
        self.plan = plan
        self.pace = pace
        self.mover = RedisMover(plan.level, timeout_ms)
        self.more_s = timeout_ms / 1000
        self.told = told
        self.tally = Tally()

    def move(self) -> Tally:
        """Move all that must move from the servers of the source. Raises Refused."""
        for connection in self._open(list(self.plan.source.servers)):
            for keys in self._pages(connection):
                left: dict[str, tuple[Server, list[bytes]]] = {}
                for key in keys:
                    where, home = self.plan.where(connection.server, key)
                    self.tally.note(where, connection.server, key)
                    if where is Where.LEFT:
                        left.setdefault(home.address, (home, []))[1].append(key)
                for home, group in left.values():
                    self._move(connection, home, group)
                self.told(self.tally)
        return self.tally

    def look(self) -> Tally:
        """Where all keys of all servers are; nothing is moved. Raises Refused."""
        for connection in self._open(self.plan.servers):
            for keys in self._pages(connection):
                for key in keys:
                    self.tally.note(self.plan.where(connection.server, key)[0], connection.server, key)
                    self.tally.to_light += self.plan.comes_to_light(connection.server, key)
                self.told(self.tally)
        return self.tally

    def skews(self) -> dict[str, float]:
        """Seconds that clocks of servers are ahead of this machine's, by label, where that is too much."""
        found: dict[str, float] = {}
        for server in self.plan.servers:
            with Connection(self.plan.level, server, 0) as connection:
                before = time.time()
                said = connection.ask("TIME")
                after = time.time()
            if isinstance(said, list) and len(said) == 2:
                at = int(said[0]) + int(said[1]) / 1e6
                skew = min(0.0, at - before) or max(0.0, at - after)
                if abs(skew) > AFTER_S:
                    found[server.label] = skew
        return found

    def _open(self, servers: list[Server]) -> Iterator[Connection]:
        """A connection to each database of each server that has keys."""
        places: list[tuple[Server, int]] = []
        for server in servers:
            with Connection(self.plan.level, server, 0) as connection:
                for db, count in databases(connection).items():
                    if db in self.plan.dbs:
                        places.append((server, db))
                        self.tally.total += count
        for server, db in places:
            with Connection(self.plan.level, server, db, self.more_s) as connection:
                self.tally.server = server.label
                yield connection

    def _pages(self, connection: Connection) -> Iterator[list[bytes]]:
        """SCAN: every key that is there all the time is met at least once."""
        cursor: object = b"0"
        while True:
            assert isinstance(cursor, bytes)
            page = connection.ask("SCAN", cursor, "COUNT", PAGE)
            if not isinstance(page, list) or len(page) != 2:
                raise Refused(f"{connection.server.label}: its answer to SCAN is none")
            cursor, keys = page
            yield list(dict.fromkeys(keys))
            if cursor == b"0":
                return

    def _move(self, connection: Connection, home: Server, keys: list[bytes]) -> None:
        replies = connection.ask_all([encode("MEMORY", "USAGE", key) for key in keys])
        sizes = [int(reply[1:-2]) if reply.startswith(b":") else 0 for reply in replies]
        batch: list[bytes] = []
        size = 0
        for key, more in zip(keys, sizes, strict=True):
            if batch and (len(batch) == BATCH_KEYS or size + more > BATCH_BYTES):
                self._hand_over(connection, home, batch, size)
                batch, size = [], 0
            batch.append(key)
            size += more
        self._hand_over(connection, home, batch, size)

    def _hand_over(self, connection: Connection, home: Server, keys: list[bytes], size: int) -> None:
        self.pace.spend(len(keys), size)
        pause, replace = FIRST_PAUSE_S, False
        for tries_left in reversed(range(TRIES)):
            self.plan.check()
            reply = connection.ask_all([self.mover.hand_over(home, connection.greeting, keys, replace)])[0]
            outcome = self.mover.outcome(reply)
            if outcome in (Outcome.DONE, Outcome.NONE):
                break
            if outcome is Outcome.OCCUPIED:  # why the old home is right: hyper_proxy/conn_pool/moving/lane.py
                replace = True
                continue
            if outcome is Outcome.FAILED or not tries_left:
                said = reply[1:-2].decode(errors="replace")
                names = [f"{server.label} ({server.address})" for server in (connection.server, home)]
                raise Refused(f"{names[0]} can't hand keys to {names[1]}: {said}")
            self.pace.pause(pause)
            pause *= 2
        self.tally.moved += len(keys)
        self.tally.size += size
        self.told(self.tally)


def databases(connection: Connection) -> dict[int, int]:
    """How many keys are in each database that has some."""
    text = connection.ask("INFO", "keyspace")
    lines = text.decode().splitlines() if isinstance(text, bytes) else []
    rows = [line[2:].split(":keys=") for line in lines if line.startswith("db")]
    return {int(db): int(rest.partition(",")[0]) for db, rest in rows}
