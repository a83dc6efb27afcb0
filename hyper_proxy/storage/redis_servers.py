"""The servers of a redis level, whatever its topology."""

from __future__ import annotations

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.tongue import Tongue
from hyper_proxy.conn_pool.topology.discovered import Discovered
from hyper_proxy.storage.redis_topology_cluster import Cluster
from hyper_proxy.storage.redis_topology_sentinel import Sentinels

TOPOLOGIES: dict[str, type[Discovered]] = {"cluster": Cluster, "sentinel": Sentinels}


def servers_of(instance: str, level: Level, tongue: Tongue, kept: Pools | None) -> Pools:
    """kept: those of the configuration before; what has not changed goes on."""
    kind = TOPOLOGIES.get(level.topology)
    if kind is None:
        return Pools(instance, level, tongue, kept)
    return kind(instance, level, tongue, kept if isinstance(kept, kind) else None)
