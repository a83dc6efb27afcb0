"""memcached as a storage: its greeting, and the lanes of one level's servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue
from hyper_proxy.storage.memcache_replies import MemcacheParser
from hyper_proxy.storage.memcache_speech import MemcacheSpeech

MAX_KEY_BYTES = 250  # what memcached takes; with a longer key it would not read the value of a set
QUESTIONS = 2  # one would not show a server that answers too much


@dataclass(frozen=True, slots=True)
class MemcacheGreeting:
    """All connections to a memcached are alike."""

    probe = b"version\r\n"

    def greet(self, ask: Callable[[bytes], bytes]) -> None:
        """Ask for the version, twice: a server that answers too much or nonsense never comes into service.

        Raises ReplyError.
        """
        for _ in range(QUESTIONS):
            answer = ask(b"version\r\n")
            if not answer.startswith(b"VERSION "):
                raise ReplyError(f"version was answered {answer[:80].decode(errors='replace').strip()!r}")


TONGUE = Tongue(MemcacheParser, MemcacheGreeting(), MemcacheSpeech())


class MemcacheStorage:
    """The servers of one level. A front that speaks memcache forwards to it as it is."""

    forwards = True

    def __init__(self, instance: str, level: Level, previous: object = None) -> None:
        self.level = level
        kept: Pools | None = previous.nodes if isinstance(previous, MemcacheStorage) else None
        self.nodes: Pools = Pools(instance, level, TONGUE, kept)
        self._lanes: dict[int, list[Lane]] = {}

    def lanes(self, client: int) -> list[Lane]:
        """The shared lanes by shard. One client always gets the same ones, so its requests to a node stay in order."""
        index = client % self.level.connections
        lanes = self._lanes.get(index)
        if lanes is None:
            lanes = self._lanes[index] = self.lanes_of(self.nodes.targets, index)
        return lanes

    def lanes_of(self, targets: Iterable[Target], client: int) -> list[Lane]:
        """Those of some nodes: of all of them, or of the homes."""
        return [target.lane(MemcacheGreeting(), client % self.level.connections) for target in targets]

    def release(self, successor: object) -> None:
        """Let go of the nodes that the successor has not taken over."""
        self.nodes.close(successor.nodes if isinstance(successor, MemcacheStorage) else None)
