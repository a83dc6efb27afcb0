"""redis servers whose topology is found out, for clients that speak redis: requests go on as they are."""

from __future__ import annotations

from typing import cast

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.topology.discovered import Discovered
from hyper_proxy.conn_pool.topology.member import Member
from hyper_proxy.storage.redis import RedisStorage
from hyper_proxy.storage.redis_servers import servers_of
from hyper_proxy.storage.redis_topology_cluster import Cluster


class TopologyStorage(RedisStorage):
    """The servers of one level, which change."""

    def pools(self, instance: str, level: Level, kept: Pools | None) -> Pools:
        return servers_of(instance, level, self.tongue, kept)

    def lanes(self, db: int, resp: int, client: int) -> list[Lane]:
        return cast(Discovered, self.nodes).lanes(self.greeting(db, resp), client % self.level.connections)

    def receivers(self, name: bytes, read: bool) -> list[Target]:
        return list(self.nodes.homes)

    def borrow_of(self, node: Node, db: int, resp: int, patient: bool = False) -> Lane:
        for key in [key for key in self._idle if key[0].closed]:  # it is no master any more
            for lane in self._idle.pop(key):
                lane.abandon()
        return super().borrow_of(node, db, resp, patient)


class SentinelStorage(TopologyStorage):
    """Masters under sentinels."""


class ClusterStorage(TopologyStorage):
    """A redis cluster."""

    follows = True

    def receivers(self, name: bytes, read: bool) -> list[Target]:
        """The masters. A message goes to one of them: the cluster itself tells it to all."""
        return list(self.nodes.homes[:1] if name == b"publish" else self.nodes.homes)

    def moved(self, lane: Lane, reply: bytes) -> Node | None:
        if not reply.startswith(b"-MOVED "):
            return None
        try:
            return cast(Cluster, self.nodes).redirected(cast(Member, lane.node), reply)
        except ReplyError:
            return None

    def plain(self, lane: Lane, reply: bytes) -> bytes:
        if self.moved(lane, reply) is None and not reply.startswith(b"-ASK "):
            return reply
        return b"-TRYAGAIN the keys have just moved to another server: begin the transaction again\r\n"


# By `topology` of the level.
TOPOLOGIES: dict[str, type[TopologyStorage]] = {"cluster": ClusterStorage, "sentinel": SentinelStorage}


def redis_storage(instance: str, level: Level, previous: RedisStorage | None) -> RedisStorage:
    """The storage of a level of redis servers."""
    kind = TOPOLOGIES.get(level.topology, RedisStorage)
    return kind(instance, level, previous if type(previous) is kind else None)
