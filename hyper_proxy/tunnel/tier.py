# cython: language_level=3, annotation_typing=False
"""One cache level: which of its servers holds a key, what is asked of it, and in which order things may happen."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from hyper_proxy.common import parallel, witness
from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.config.model import Level, WriteBack
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.rooms.rooms import as_cache
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue
from hyper_proxy.conn_pool.topology.discovered import Discovered
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ
from hyper_proxy.stats.tier import TierStats
from hyper_proxy.storage.cache import NOTHING, Answer, Cache
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.storage.memcache_replies import DROPPED as MEMCACHE_DROPPED
from hyper_proxy.storage.redis_servers import servers_of
from hyper_proxy.storage.resp import DROPPED as REDIS_DROPPED
from hyper_proxy.storage.sharded import Locate
from hyper_proxy.tunnel.batch import Batch
from hyper_proxy.tunnel.deadline import send_by
from hyper_proxy.tunnel.outcome import Failed, Told

# A fill may wait behind so many bytes; behind more it might come too late.
SPARE_BYTES = 1 << 20

# So long after a reload nothing is kept where a key was not before: workers that have not heard of it yet (they are
# given three seconds), and writes that began under the configuration before, do not mark it there.
REST_S = 5.0

NOWHERE = -1
UNREAD = (REDIS_DROPPED, MEMCACHE_DROPPED)  # what stands for a reply that there was no memory for


@dataclass(frozen=True, slots=True)
class Pace:
    """mark_s: how long a mark stands, or a second less. fill_s: from the beginning of a read to the fill it makes.
    slow_s: a write that takes longer marks again. What is then left of a mark is for a fill's way to the server.
    """

    mark_s: float = 3.0
    fill_s: float = 0.5
    slow_s: float = 1.0

    @property
    def settle_s(self) -> float:
        """After so long nobody fills in any more what he had begun to read before."""
        return self.fill_s + max(0.0, self.mark_s - 1 - self.slow_s - self.fill_s)


PACE = Pace()


@dataclass(frozen=True, slots=True)
class Part:
    """The keys of a request that are on one shard, and where they stand in it."""

    shard: int
    indexes: list[int]
    keys: list[bytes]


class Tier:
    """previous: the tier of the configuration before; nodes that have not changed keep their connections."""

    def __init__(
        self,
        instance: str,
        level: Level,
        write_back: WriteBack,
        cache: Cache,
        placement: Locate,
        previous: Tier | None = None,
        pace: Pace = PACE,
    ) -> None:
        self.instance = instance
        self.level = level
        self.write_back = write_back
        self.pace = pace
        self.cache = cache
        kept = previous.nodes if previous else None
        own = as_cache(level) if cache.keeps and not level.read_only else level
        self.nodes: Pools = servers_of(instance, own, Tongue(cache.parser, cache.greeting, cache.speech), kept)
        self.placement = placement
        self.keeps = cache.keeps and not level.read_only  # else it is filled by others
        self.is_written = self.keeps and level.write != "around"
        self.deadline_s = level.deadline_ms / 1000 if level.optional else 0.0
        self.counts: TierStats = previous.counts if previous else TierStats()
        self.before: Tier | None = None  # while this one rests: where keys were; None: nowhere
        self.rests_until = 0.0

    def follow(self, before: Tier | None) -> None:
        """A reload puts this one into force, in the place of `before` if there was such a level; a level that rests
        itself can't tell where all have marked."""
        self.before = before if before is not None and before.rests_until < monotonic() else None
        if before is not None:
            before.before = None  # which nobody needs any more, or else it keeps nothing
        self.rests_until = monotonic() + REST_S

    def _rests(self, key: bytes) -> bool:
        """Is nothing to be kept of this key for now?"""
        if self.rests_until < monotonic():
            self.rests_until, self.before = 0.0, None
            return False
        return self.before is None or self.before.homes(key) != self.homes(key)

    def split(self, keys: Sequence[bytes]) -> list[Part]:
        """The parts; the keys that this kind of server can't hold are NOWHERE."""
        parts: dict[int, Part] = {}
        for index, key in enumerate(keys):
            shard = self.placement.locate(key, 0, len(key)) if self.cache.takes(key) else NOWHERE
            part = parts.setdefault(shard, Part(shard, [], []))
            part.indexes.append(index)
            part.keys.append(key)
        return list(parts.values())

    def read(self, part: Part) -> list[Answer]:
        """What it has of each key. Raises BackendError."""
        lane = self._lane(part.shard)
        (reply,) = self.ask(part.shard, [self.cache.question(part.keys)], READ)
        if isinstance(reply, BackendError):
            raise reply
        try:
            return self.cache.answers(reply, part.keys)
        except (ReplyError, ValueError) as fault:
            if reply in UNREAD:
                raise lane.node.unread() from None
            if reply[:1] == b"-" or reply.startswith((b"SERVER_ERROR", b"ERROR")):
                raise self.fault(part.shard, str(fault)) from None
            raise lane.distrust(str(fault)) from None

    def fault(self, shard: int, detail: str) -> BackendError:
        """Count an answer that is an error, or none to the question, and say it."""
        error: BackendError = self._lane(shard).node.error("protocol", detail)
        return error

    def ask(self, shard: int, requests: Sequence[bytes], klass: int) -> list[bytes | BackendError]:
        """The replies of one server; of an optional level, what has come in time."""
        batch, lane = Batch(), self._lane(shard)
        for request in requests:
            self._send(batch, lane, request, klass)
        batch.wait()
        witness.note(lane.node.label)
        return batch.slots

    def _send(self, batch: Batch, lane: Lane, request: bytes, klass: int) -> None:
        if self.deadline_s:
            send_by(batch, batch.expect(), lane, request, klass, self.deadline_s)
        else:
            batch.send(lane, request, klass)

    def fill(
        self, shard: int, entries: Iterable[tuple[bytes, Told]], since: float, told: Sequence[Gather | None] = ()
    ) -> None:
        """Add what was found below, or that nothing was, off the reply's path. Write-back has no other way to a server.

        A server that is busy, or not connected, is spared: what waits for it might come too late. So is one whose
        connection is younger than the question below, which began at `since`: it may have been started again in the
        meantime, and have lost the mark of a write. told: who gets the first server's answer to an entry, with its
        position, or at once an empty one where nothing is sent.
        """
        lanes = [lane for lane in self.nodes.targets[shard].open_lanes() if lane.connected_at < since]
        for position, (key, item) in enumerate(entries):
            idle = [lane for lane in lanes if lane.pending_bytes <= SPARE_BYTES and not lane.is_full(IDEMPOTENT)]
            if idle and self.rests_until and self._rests(key):
                idle = []
            request = self._filling(key, item) if idle else None
            listener = told[position] if told else None
            if request is not None:
                self.counts.level_fills += 1
                for lane in idle:
                    lane.submit(request, IDEMPOTENT, listener if lane is idle[0] else None, position)
                continue
            self.counts.level_fills_skipped += not idle
            if listener is not None:
                listener.deliver(position, b"")

    def _filling(self, key: bytes, item: Told) -> bytes | None:
        """The request; None when this can't be kept, or not for long enough. Nobody's value may pass for NOTHING."""
        if not self.keeps or isinstance(item, Failed):
            return None
        if item is None:
            seconds = self._around(self.write_back.negative_ttl)
            return self.cache.fill(key, Item(NOTHING, 0, None, 0), max(seconds, 1.0)) if seconds > 0 else None
        seconds = self.seconds(item)
        return self.cache.fill(key, item, seconds) if seconds > 0 and item.value != NOTHING else None

    def seconds(self, item: Item) -> float:
        """How long an item stays."""
        seconds = self._around(self.write_back.ttl)
        return seconds if item.expires_at is None else min(seconds, item.expires_at - time.time())

    def _around(self, ttl: float) -> float:
        """With jitter, so that keys filled together do not end together."""
        jitter = self.write_back.jitter
        return ttl * (1 + jitter * (2 * random.random() - 1))

    def mark(self, wanted: Iterable[tuple[bytes, Target]]) -> list[tuple[bytes, Target]]:
        """Mark keys as written, each at a place; returns those of which nobody knows whether the mark stands."""
        batch = Batch()
        asked: list[tuple[bytes, Target]] = []
        for key, place in wanted:
            self._send(batch, place.lane(self.cache.greeting), self.cache.mark(key, self.pace.mark_s), IDEMPOTENT)
            asked.append((key, place))
        batch.wait()
        replies = batch.slots
        batch.reset()
        return [
            one
            for one, reply in zip(asked, replies, strict=True)
            if isinstance(reply, BackendError) or not self.cache.is_marked(reply)
        ]

    def places(self, key: bytes) -> list[Target]:
        """Whoever may have a copy of a key, which a write must mark."""
        if not self.is_written or not self.cache.takes(key):
            return []
        shards = self.placement.everywhere(key)
        return list(dict.fromkeys(place for shard in shards for place in self.nodes.targets[shard].places))

    def homes(self, key: bytes) -> set[tuple[str, int]]:
        """The same, as addresses with the database: of two configurations these can be compared."""
        return {(place.home.server.address, self.level.db) for place in self.places(key)}

    def has_kept(self, place: Target, since: float) -> bool:
        """Has this place what it was told before that time, as far as its connections can tell?"""
        lanes = place.open_lanes()
        return bool(lanes) and all(lane.connected_at < since for lane in lanes)

    def empty(self) -> None:
        """Remove everything from every server, whatever the others say. Raises BackendError when one does not."""
        parallel.each(self._empty, self.nodes.every if self.keeps else [])

    def _empty(self, target: Target) -> None:
        lane = target.lane(self.cache.greeting)
        reply = Batch().ask(lane, self.cache.empty(), ADMIN)
        if reply not in (b"+OK\r\n", b"OK\r\n"):
            raise lane.node.error("protocol", f"it was not emptied: {reply[:80]!r}")

    def release(self, successor: Tier | None) -> None:
        """Let go of the nodes that the successor has not taken over."""
        self.nodes.close(successor.nodes if successor else None)

    def lanes(self, greeting: Greeting) -> list[Lane]:
        """The shared lanes by shard, for a client's own requests."""
        if isinstance(self.nodes, Discovered):
            return self.nodes.lanes(greeting, 0)
        return [target.lane(greeting) for target in self.nodes.targets]

    def _lane(self, shard: int) -> Lane:
        return self.nodes.targets[shard].lane(self.cache.greeting)
