"""A master with its replicas."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from hyper_proxy.conn_pool.target import Junction
from hyper_proxy.conn_pool.topology.follow import FollowLane
from hyper_proxy.conn_pool.topology.member import Member, Nobody

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.node import Node
    from hyper_proxy.conn_pool.topology.follow import FollowLeg

SAMPLES = 256  # of how far a master was, kept to tell how far behind its replicas are


class Guide(Protocol):
    """What knows the way (discovered.py)."""

    def follow(self, leg: FollowLeg, reply: bytes) -> bool:
        """A server has answered an error. True: the request goes on; else the client is told."""
        ...

    def lost(self, leg: FollowLeg, error: BackendError) -> bool:
        """There was no answer. True: the request goes on; else the client is told."""
        ...


class Group(Junction[FollowLane]):
    """What stands at the shards of a master. reads: "master", "replica" or "prefer_replica".

    of_replica: from the greeting of a client to that of a connection to a replica. nobody: is read from when there is
    no replica to read from, and there must be one. offsets: how much the master had written, and when
    (hyper_proxy/storage/redis_lag.py).
    """

    def __init__(
        self, topology: Guide, master: Member, reads: str, nobody: Nobody, of_replica: Callable[[Greeting], Greeting]
    ) -> None:
        super().__init__()
        self.topology = topology
        self.master = master
        self.reads = reads
        self.nobody = nobody
        self.of_replica = of_replica
        self.replicas: list[Member] = []
        self.readers: list[Member] = []
        self.offsets: deque[tuple[float, int]] = deque(maxlen=SAMPLES)

    @property
    def home(self) -> Node:
        """The master, for what one client alone talks about: transactions, blocking commands."""
        return self.master

    def make_lane(self, greeting: Greeting, index: int) -> FollowLane:
        return FollowLane(self, greeting, index, self._lanes(greeting, index))

    def turn_to(self, master: Member, replicas: Sequence[Member]) -> None:
        """These servers are asked from now on."""
        self.replicas = list(replicas)
        master.lead()
        readers = [one for one in replicas if one.is_looked_at and not one.late] if self.reads != "master" else []
        if master is self.master and readers == self.readers:
            return
        self.master, self.readers = master, readers
        for (greeting, index), lane in self.made.items():
            lane.turn_to(self._lanes(greeting, index))

    def _lanes(self, greeting: Greeting, index: int) -> list[Lane]:
        of_readers = self.of_replica(greeting)
        return [self.master.lane(greeting, index), *(one.lane(of_readers, index) for one in self.readers)]
