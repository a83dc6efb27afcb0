"""A redis cluster: its slots and servers are asked of it, and what it answers instead of a reply is followed.

Source: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import choice, sample
from typing import ClassVar, cast

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Server
from hyper_proxy.conn_pool.asking import ask_all
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.topology.discovered import FREE_TRIES, Discovered
from hyper_proxy.conn_pool.topology.follow import FollowLeg
from hyper_proxy.conn_pool.topology.group import Group
from hyper_proxy.conn_pool.topology.member import Member
from hyper_proxy.conn_pool.topology.memory import RememberedMany
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.storage.redis import RedisGreeting
from hyper_proxy.storage.redis_lag import measure
from hyper_proxy.storage.redis_topology_follow import Followed
from hyper_proxy.storage.redis_topology_words import SLOTS, Address, Range, read_info, read_redirection, read_slots
from hyper_proxy.storage.redis_words import encode

ASKING = encode("ASKING")
QUESTIONS = [encode("CLUSTER", "INFO"), encode("CLUSTER", "SLOTS")]
MOST_ASKED = 5  # servers at one look


class Cluster(Followed):
    """A shard is a slot. The servers that are listed are those that are asked first."""

    def begin(self, previous: Discovered | None) -> None:
        """Before anything is known each slot is asked of one of the listed servers, which says where it is."""
        self.groups: dict[Member, Group] = {}
        by = " ".join(sorted(server.address for server in self.level.servers))
        self.remembered = RememberedMany(f"{self.instance} {by}")
        self.known = previous is not None and previous.known
        if previous is not None and previous.known:
            kept = {one: self.member(one.master.server) for one in cast(Cluster, previous).groups.values()}
            owners = [self._group(kept[cast(Group, target)]) for target in previous.targets]
            for one, master in kept.items():
                self._group(master).turn_to(master, [self.member(replica.server) for replica in one.replicas])
        else:
            owners = [self._group(self.seeds[slot * len(self.seeds) // SLOTS]) for slot in range(SLOTS)]
        self.targets = list(owners)
        self._find_homes()

    def of_replica(self, greeting: Greeting) -> Greeting:
        return replace(cast(RedisGreeting, greeting), readonly=True)

    # ---- learning

    def learn(self) -> None:
        """From the first server that finds the cluster well, or else from the first that knows anything."""
        second_best: tuple[Member, list[Range]] | None = None
        failure: BackendError | ReplyError | None = None
        for member in self._candidates():
            try:
                well, ranges = self._ask(member)
            except (BackendError, ReplyError) as error:
                failure = error
                continue
            second_best = second_best or (member, ranges)
            if well:
                second_best = (member, ranges)
                break
        if second_best is None or not second_best[1]:
            raise failure or ReplyError("no server of the cluster knows of any slot")
        self._take(*second_best)
        self.known = True
        if self.level.reads != "master":
            measure(self.groups.values(), self.greeting, self.level.max_lag_s)

    def _candidates(self) -> list[Member]:
        masters = [one for one in self.groups if not one.is_backing_off and not one.out]
        rest = self.others(masters)
        found = [*sample(masters, len(masters)), *sample(rest, len(rest))][:MOST_ASKED] or self.seeds
        return found if self.known else [*found, *self._recalled()]

    def _recalled(self) -> list[Member]:
        """Servers of which another worker knew, before this one began."""
        return [self.member(Server(host=host, port=port)) for host, port in self.remembered.get()]

    def _ask(self, member: Member) -> tuple[bool, list[Range]]:
        info, slots = ask_all(member.lane(self.greeting), QUESTIONS, ADMIN)
        for answer in (info, slots):
            if isinstance(answer, BackendError):
                raise answer
        return read_info(cast(bytes, info)).get("cluster_state") == "ok", read_slots(cast(bytes, slots))

    def _take(self, asked: Member, ranges: list[Range]) -> None:
        """The cluster is as this server says."""
        shards: dict[Member, list[int]] = {}
        replicas: dict[Member, list[Member]] = {}
        for one in ranges:
            master = self.at(one.master, asked)
            shards.setdefault(master, []).extend(range(one.first, min(one.last + 1, SLOTS)))
            replicas[master] = [self.at(address, asked) for address in one.replicas]
        for master, slots in shards.items():
            self.assign(slots, self._group(master))
        for member in [one for one in self.groups if one not in shards]:
            del self.groups[member]
        for member, group in self.groups.items():
            group.turn_to(member, replicas[member])
        self.remembered.put((member.server.host, member.server.port) for member in self.groups)
        self._find_homes()

    def at(self, address: Address, asked: Member) -> Member:
        """The server there."""
        host, port = address
        return self.member(Server(host=host or asked.server.host, port=port))

    def _group(self, master: Member) -> Group:
        found = self.groups.get(master)
        if found is None:
            found = self.groups[master] = self.group(master)
        return found

    def _find_homes(self) -> None:
        """The masters in the order of their first slots: a scan that goes on finds them in the same places."""
        self.homes = [group.home for group in dict.fromkeys(self.targets)]
        self.show()

    # ---- following

    def lost(self, leg: FollowLeg, error: BackendError) -> bool:
        """As long as nothing is known any other of the listed servers will do: it says where the key is. Of those that
        are none of the cluster's any more any master takes the place."""
        home = leg.route.group.master
        gone = self.known and home not in self.groups and leg.asked.node is home
        able: Iterable[Member] = self.groups if gone else () if self.known else self.seeds
        others = [] if error.sent else [one for one in able if not one.is_backing_off]
        if others and (gone or leg.tries < len(self.seeds)):
            leg.tries += 1
            self.doubt()
            leg.ask(choice(others).lane(leg.route.greeting, leg.route.index), b"")
            return True
        return super().lost(leg, error)

    def moved(self, leg: FollowLeg, reply: bytes) -> bool:
        """Another server has the slot, now and for all that comes."""
        member = self.redirected(leg.asked.node, reply)
        leg.tries += 1
        if leg.tries > FREE_TRIES:
            return self.later(leg)
        leg.ask(member.lane(leg.route.greeting, leg.route.index), b"")
        return True

    def redirected(self, asked: object, reply: bytes) -> Member:
        """Take note of a -MOVED; the new master. Raises ReplyError."""
        slot, address = read_redirection(reply)
        member = self.at(address, cast(Member, asked))
        if 0 <= slot < SLOTS and not self.closed:
            self.assign([slot], self._group(member))
        self.doubt()
        return member

    def asked(self, leg: FollowLeg, reply: bytes) -> bool:
        """Another server has this key already; the slot is on its way there."""
        leg.tries += 1
        if leg.tries > FREE_TRIES:
            return self.later(leg)
        _, address = read_redirection(reply)
        member = self.at(address, cast(Member, leg.asked.node))
        leg.ask(member.lane(leg.route.greeting, leg.route.index), ASKING)
        return True

    follows: ClassVar = {
        b"MOVED": moved,
        b"ASK": asked,
        b"TRYAGAIN": Followed.wait,
        b"CLUSTERDOWN": Followed.doubtful,
        b"LOADING": Followed.wait,
        b"MASTERDOWN": Followed.unfit,
    }
