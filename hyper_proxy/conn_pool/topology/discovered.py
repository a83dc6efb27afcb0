"""The servers of a level whose topology is asked of some of them: what all such topologies have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from random import uniform
from time import monotonic

import gevent
from gevent import get_hub
from gevent.event import Event

from hyper_proxy.common import faults, log
from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Level, Server
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.nodes import identity
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue
from hyper_proxy.conn_pool.topology.follow import FollowLeg
from hyper_proxy.conn_pool.topology.group import Group
from hyper_proxy.conn_pool.topology.member import Member, Nobody

LEAST_S = 0.1  # between two looks, however much is doubted
LOOK_S = 1.0  # between two, where replicas are read from, as long as nothing is known, and after one in vain
FORGET_S = 60.0  # a server of which nobody has told for so long is closed
PATIENCE_S = 1.0  # that a request is sent again and again
PAUSES_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
FREE_TRIES = 3  # without a pause


class Discovered(Pools):
    """members: by address, and by name where the server has one. targets: a Group by shard, replaced in place.

    previous: that of the configuration before, of the same kind; servers that have not changed keep their connections.
    """

    every_s = 10.0  # looks beside those when something is doubted

    def __init__(self, instance: str, level: Level, tongue: Tongue, previous: Discovered | None) -> None:
        self.instance = instance
        self.level = level
        self.parser = tongue.parser
        self.greeting = tongue.greeting
        self.speech = tongue.speech
        self.by_name = {}
        self.rooms = {}
        self.known = False
        self.members: dict[str, Member] = {}
        self.before = dict(previous.members) if previous else {}
        self.closed = False
        self.heir: Discovered | None = None
        self.tables: dict[tuple[Greeting, int], list[Lane]] = {}
        why = "there is no replica that may be read from"
        self.nobody = Nobody(instance, level, "(replica)", self.parser, self.greeting, why)
        self.targets: list[Target] = []
        self.homes: list[Target] = []
        self.seeds = [self.member(server, self.seed_greeting) for server in level.servers]
        if level.reads != "master":
            self.every_s = LOOK_S
        self.begin(previous)
        self._doubted = Event()
        self._doubted.set()
        gevent.spawn(self._run)

    # ---- of each kind

    @property
    def seed_greeting(self) -> Greeting:
        """For the servers that are listed."""
        return self.greeting

    @abstractmethod
    def begin(self, previous: Discovered | None) -> None:
        """Fill `targets` and `homes` with what `previous` knew, or with something to begin with."""

    @abstractmethod
    def learn(self) -> None:
        """Ask, and change `targets` and `homes`. Raises BackendError or ReplyError when nobody can tell."""

    @abstractmethod
    def follow(self, leg: FollowLeg, reply: bytes) -> bool:
        """A server has answered an error. True: the request goes on; else the client is told."""

    def of_replica(self, greeting: Greeting) -> Greeting:
        """How a replica is greeted for reads."""
        return greeting

    # ---- servers

    def member(self, server: Server, greeting: Greeting | None = None) -> Member:
        """The server at an address; made when first told of, or taken from the configuration before."""
        if self.heir is not None:  # requests that began before a reload still go on
            return self.heir.member(server, greeting)
        found = self.members.get(server.address)
        if found is None:
            before = self.before.pop(server.address, None)
            if before is not None and self.is_same(before):
                found = before
            else:
                found = Member(self.instance, self.level, server, self.parser, greeting or self.greeting, before)
            self.members[server.address] = found
            self.show()
            if self.closed:
                found.close()
        found.touch()
        return found

    def is_same(self, before: Member) -> bool:
        """May a server of the configuration before be kept, with its connections?"""
        return not before.closed and before.made_for == identity(self.level, before.server)

    def group(self, master: Member) -> Group:
        """A new one."""
        return Group(self, master, self.level.reads, self.nobody, self.of_replica)

    def show(self) -> None:
        """What is there now, for those who count and those who probe."""
        self.all = [*self.members.values()]
        self.every = self.homes

    def lanes(self, greeting: Greeting, index: int) -> list[Lane]:
        """The lanes by shard; the list is changed in place when a shard goes elsewhere."""
        table = self.tables.get((greeting, index))
        if table is None:
            made = {id(target): target.lane(greeting, index) for target in dict.fromkeys(self.targets)}
            table = self.tables[greeting, index] = [made[id(target)] for target in self.targets]
        return table

    def assign(self, shards: Iterable[int], group: Group) -> None:
        """These shards are this group's from the next request on."""
        moved = [shard for shard in shards if self.targets[shard] is not group]
        for shard in moved:
            self.targets[shard] = group
        for (greeting, index), table in self.tables.items() if moved else ():
            lane = group.lane(greeting, index)
            for shard in moved:
                table[shard] = lane

    def forget(self) -> None:
        """Close the servers of which nobody has told for long."""
        since = monotonic() - FORGET_S
        for address, member in list(self.members.items()):
            if member.seen_at < since and member not in self.seeds:
                del self.members[address]
                member.close()
        self.show()

    def close(self, successor: Pools | None) -> None:
        """Close the servers that the successor does not have."""
        self.closed = True
        self._doubted.set()
        self.heir = successor if isinstance(successor, Discovered) else None
        kept = self.heir.members if self.heir is not None else {}
        for address, member in self.members.items():
            heir = kept.get(address)
            if heir is not member:
                member.close(heir)

    # ---- looking

    def doubt(self) -> None:
        """Something is not as it was: look soon."""
        self._doubted.set()

    def _run(self) -> None:
        """The body of the greenlet that looks."""
        told = ""  # why nothing was learned at the last look
        while True:
            self._doubted.wait((self.every_s if self.known and not told else LOOK_S) * uniform(0.8, 1.2))
            self._doubted.clear()
            if self.closed:
                return
            try:
                self.learn()
                self.forget()
                told = ""
            except Exception as error:  # noqa: BLE001  what servers say is foreign; whoever looks must look again
                expected = isinstance(error, BackendError | ReplyError)
                why = str(error) if expected else repr(error)
                if why != told:
                    if not expected:
                        faults.show(self)
                    told = why
                    log.warning("topology.unknown", instance=self.instance, why=told)
            gevent.sleep(LEAST_S * uniform(0.8, 1.2))

    # ---- requests that have to go on

    def lost(self, leg: FollowLeg, error: BackendError) -> bool:
        """A server was not there. What was not sent waits while no server is known yet."""
        self.doubt()
        leg.tries += 1
        if leg.asked.node is self.nobody:
            return False
        group = leg.route.group
        if leg.asked.node is not group.master and group.reads == "prefer_replica" and leg.tries <= FREE_TRIES:
            leg.ask(leg.route.lanes[0], b"")  # a read, which may be done twice
            return True
        if leg.asked.node is not group.master and group.reads == "replica" and leg.tries <= FREE_TRIES:
            leg.again()
            return True
        return (error.kind == "unknown" or not self.known) and not error.sent and self.later(leg)

    def later(self, leg: FollowLeg) -> bool:
        """Send it again in a moment. False when it has waited for long enough."""
        at = monotonic()
        leg.began = leg.began or at
        if at - leg.began > PATIENCE_S:
            return False
        leg.tries += 1
        pause = PAUSES_S[min(leg.tries, len(PAUSES_S)) - 1]
        get_hub().loop.timer(pause).start(leg.again)
        return True

    def others(self, excluded: Sequence[Member]) -> list[Member]:
        """Members that may be asked."""
        return [one for one in self.members.values() if one not in excluded and not one.is_backing_off and not one.out]
