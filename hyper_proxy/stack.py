"""What an instance's levels are built into: one storage, or caches above one (hyper_proxy/tunnel/levels.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.kinds import LOCAL
from hyper_proxy.config.model import Instance, Level, Server
from hyper_proxy.front import Snapshot
from hyper_proxy.hashing.lushan import db_rule
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.routes.build import build_level
from hyper_proxy.protocol.redis.moving import request_keys
from hyper_proxy.storage.cache import Cache
from hyper_proxy.storage.keyvalue import KeyValue
from hyper_proxy.storage.local import Local
from hyper_proxy.storage.lushan_cache import LushanCache
from hyper_proxy.storage.memcache_cache import MemcacheCache
from hyper_proxy.storage.redis import RedisStorage
from hyper_proxy.storage.redis_cache import RedisCache
from hyper_proxy.storage.sharded import Sharded
from hyper_proxy.storage.table import FORWARDING, KEY_SPACES
from hyper_proxy.tunnel.behind import Behind
from hyper_proxy.tunnel.gate import Gate
from hyper_proxy.tunnel.levels import Levels
from hyper_proxy.tunnel.succession import successors
from hyper_proxy.tunnel.tier import Tier

# The storages that can stand above another level.
CACHES: dict[str, Callable[[Level], Cache]] = {
    "redis": RedisCache,
    "memcache": MemcacheCache,
    "lushan": lambda level: LushanCache(level, db_rule(level.lushan_db)),
}

# Placements never change; a large one takes its time to build, which a reload of other things should not.
PLACEMENTS_KEPT = 32


def build_snapshot(instance: Instance, previous: Snapshot | None) -> Snapshot:
    """What serves this configuration of an instance; nodes of `previous` that have not changed keep their connections.

    Raises HyperProxyError when it can't be built.
    """
    *above, below = instance.levels
    before = previous.storage if previous else None
    copies = before if isinstance(before, Local) else None
    before = inner(before)
    stacked = before if isinstance(before, Levels) else None
    last = stacked.last if stacked else before
    waiting = last if isinstance(last, Behind) else None
    last = waiting.below if waiting else last
    same = previous is not None and previous.instance.levels[-1].storage == below.storage
    same = same and isinstance(last, KeyValue) != instance.forwards
    storage = _storage(instance, below, last if same else None)
    if above and above[0].storage == LOCAL:
        local, *above = above
    else:
        local = None
    if not above:
        if local:
            return Snapshot(instance, Local(storage, local.max_bytes, instance.write_back, True, copies), Placement(1))
        # The worker's own storage is one shard.
        return Snapshot(instance, storage, _placement(below) if len(storage.nodes) else Placement(1))
    tiers: list[Tier] = []
    were = stacked.tiers if stacked else []
    came_from = {new: were[old] for old, new in successors([tier.level for tier in were], above).items()}
    try:
        for depth, level in enumerate(above):
            cache, old = CACHES[level.storage](level), came_from.get(depth)
            tiers.append(Tier(instance.name, level, instance.write_back, cache, _placement(level), old))
    except HyperProxyError:  # what was built serves nobody, and would go on
        for depth, tier in enumerate(tiers):
            tier.release(came_from.get(depth))
        if storage is not last:
            storage.release(last if same else None)
        raise
    if above[-1].write == "behind":
        storage = Behind(instance.name, storage, above[-1].max_behind_bytes, waiting)
    elif waiting and len(waiting.backlog):  # as long as the configuration says nothing else, nothing new waits
        storage = Behind(instance.name, storage, 0, waiting)
    gate = Gate.before(instance.name, instance.write_back, below, stacked.gate if stacked else None)
    levels: KeyValue = Levels(tiers, storage, gate)
    if local:
        levels = Local(levels, local.max_bytes, instance.write_back, False, copies)
    return Snapshot(instance, levels, Placement(1))


def inner(storage: Any) -> Any:
    """What a level `local` has copies of; any other storage is its own."""
    return storage.below if isinstance(storage, Local) else storage


def _storage(instance: Instance, level: Level, previous: Any) -> Any:
    """The storage of one level; `previous` is the one that it replaces, of the same kind, or None."""
    kinds = FORWARDING if instance.forwards else KEY_SPACES
    storage = kinds[level.storage](instance.name, level, previous)
    if isinstance(storage, Sharded):
        storage.placement = _placement(level)
    if isinstance(storage, RedisStorage):
        storage.understand(request_keys)
    return storage


def _placement(level: Level) -> Placement:
    """Where keys live does not depend on who is in service."""
    pools = tuple(replace(pool, servers=_in_service(pool.servers)) for pool in level.pools)
    servers = _in_service(level.servers)
    how = (level.hash, level.distribution, level.hash_tag)
    kept = {"route": level.route, "table": level.table, "topology": level.topology, "masters": level.masters}
    return _built(Level("", servers, *how, pools=pools, **kept))  # type: ignore[arg-type]


def _in_service(servers: tuple[Server, ...]) -> tuple[Server, ...]:
    return tuple(replace(one, out="") for one in servers)


@lru_cache(maxsize=PLACEMENTS_KEPT)
def _built(level: Level) -> Placement:
    return build_level(level)


def begin(snapshot: Snapshot, old: Snapshot | None) -> None:
    """Requests come from now on. Its storage may have served the configuration before, under other limits."""
    levels = inner(snapshot.storage)
    if old is not None and isinstance(levels, Levels):
        levels.follow(inner(old.storage))
    if isinstance(snapshot.storage, KeyValue):
        snapshot.storage.longest = snapshot.instance.limits.max_value_bytes


def release(old: Snapshot, new: Snapshot | None) -> None:
    """Close what the new snapshot has not taken over."""
    storage, heir = inner(old.storage), inner(new.storage) if new is not None else None
    if heir is storage:
        return
    if isinstance(heir, Levels) and not isinstance(storage, Levels):
        # Caches were put above it.
        heir = heir.last.below if isinstance(heir.last, Behind) else heir.last
        if heir is storage:
            return
    storage.release(heir if type(heir) is type(storage) or isinstance(storage, Levels) else None)
