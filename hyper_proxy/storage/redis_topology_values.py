"""Servers whose topology is found out, as a key space of the proxy's own: for clients that speak no redis, and below
other levels."""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue
from hyper_proxy.storage.keyvalue import KeyValue
from hyper_proxy.storage.redis import RedisGreeting
from hyper_proxy.storage.redis_servers import servers_of
from hyper_proxy.storage.redis_speech import RedisSpeech
from hyper_proxy.storage.redis_values import RedisShard, RedisValues
from hyper_proxy.storage.resp import RespParser
from hyper_proxy.storage.sharded import Sharded


class TopologyValues(Sharded):
    """Keys are told apart by slot or master, as the servers want it; masters are counted, walked and emptied."""

    kind = "redis"
    forwards = False
    keeps_versions = False

    def __init__(self, instance: str, level: Level, previous: TopologyValues | None = None) -> None:
        self.level = level
        self.greeting = RedisGreeting.of(level, 0, 2)
        kept = previous.nodes if previous else None
        self.nodes = servers_of(instance, level, Tongue(RespParser, self.greeting, RedisSpeech()), kept)
        super().__init__(_Shards(self.nodes.targets, self.greeting, level.connections))

    def count(self) -> int:
        return self._masters().count()

    def clear(self) -> None:
        self._masters().clear()

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        return self._masters().scan(cursor, limit)

    def _masters(self) -> Sharded:
        """Those of the moment."""
        return Sharded([RedisShard(home, self.greeting, self.level.connections) for home in self.nodes.homes])

    def release(self, successor: TopologyValues | None) -> None:
        """Let go of the servers that the successor has not taken over."""
        self.nodes.close(successor.nodes if successor else None)


class _Shards:
    """By shard; the shards of one master, of which a cluster has thousands, are one object."""

    def __init__(self, targets: Sequence[Target], greeting: RedisGreeting, connections: int) -> None:
        self.targets = targets
        self.greeting = greeting
        self.connections = connections
        self.made: dict[Target, RedisShard] = {}

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, number: int) -> KeyValue:
        target = self.targets[number]
        found = self.made.get(target)
        if found is None:
            if len(self.made) > len(set(self.targets)):  # masters of long ago
                self.made.clear()
            found = self.made[target] = RedisShard(target, self.greeting, self.connections)
        return found


def redis_values(instance: str, level: Level, previous: object) -> KeyValue:
    """The key space of a level of redis servers."""
    if level.is_found_out:
        return TopologyValues(instance, level, previous if isinstance(previous, TopologyValues) else None)
    return RedisValues(instance, level, previous if isinstance(previous, RedisValues) else None)
