"""Masters that sentinels watch: where each one is now is asked of the sentinels, who also tell of a switch at once.

Source: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/
"""

from __future__ import annotations

from dataclasses import dataclass
from random import choice
from typing import Any, ClassVar, cast

import gevent

from hyper_proxy.common import log, parallel
from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Server
from hyper_proxy.conn_pool.asking import ask, ask_all
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.topology.discovered import Discovered
from hyper_proxy.conn_pool.topology.group import Group
from hyper_proxy.conn_pool.topology.member import Member, Nobody
from hyper_proxy.conn_pool.topology.memory import Remembered
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.storage.redis import RedisGreeting
from hyper_proxy.storage.redis_lag import measure
from hyper_proxy.storage.redis_reply import parse
from hyper_proxy.storage.redis_topology_follow import Followed
from hyper_proxy.storage.redis_topology_words import Address, read_pairs
from hyper_proxy.storage.redis_words import encode

SUBSCRIBE = encode("SUBSCRIBE", "+switch-master")
ROLE = encode("ROLE")
LISTEN_AGAIN_S = 1.0
BAD = frozenset({"s_down", "o_down"})


@dataclass(frozen=True, slots=True)
class View:
    """What one sentinel says of a master; the greater the epoch, the newer it is."""

    epoch: int
    master: Address
    replicas: tuple[Address, ...]


class Sentinels(Followed):
    """A shard is a master, by its name; the servers that are listed are the sentinels."""

    every_s = 1.0

    @property
    def seed_greeting(self) -> Greeting:
        return RedisGreeting(self.level.sentinel_username, self.level.sentinel_password, 0, 2, keys="sentinel_")

    def begin(self, previous: Discovered | None) -> None:
        """A master that was known before is where it was."""
        self.groups: dict[str, Group] = {}
        self.coming: dict[str, Member] = {}
        by = " ".join(sorted(server.address for server in self.level.servers))
        self.remembered = {name: Remembered(f"{self.instance} {name} {by}") for name in self.level.masters}
        for name in self.level.masters:
            before = self.before.pop(name, None)
            if before is None or isinstance(before, Nobody):
                why = f"no sentinel has told yet where the master '{name}' is"
                found: Member = Nobody(self.instance, self.level, name, self.parser, self.greeting, why)
            elif self.is_same(before):
                found = before
            else:
                found = self._member_of(name, (before.server.host, before.server.port), before)
            self.members[name] = found
            self.groups[name] = self.group(found)
        if previous is not None:
            for name, group in cast(Sentinels, previous).groups.items():
                if name in self.groups:
                    replicas = [self.member(one.server) for one in group.replicas]
                    self.groups[name].turn_to(self.groups[name].master, replicas)
        self.targets = list(self.groups.values())
        self._find_homes()
        self._listener = gevent.spawn(self._listen)

    def close(self, successor: Pools | None) -> None:
        self._listener.kill(block=False)
        for member in self.coming.values():
            member.close()
        super().close(successor)

    # ---- learning

    def learn(self) -> None:
        views = parallel.each(self._ask, self.seeds)
        silent = []
        for name, group in self.groups.items():
            told = [view[name] for view in views if name in view]
            if told:
                self._choose(name, group, told)
            else:
                silent.append(name)
                self._recall(name, group)
        self.known = not silent
        if self.level.reads != "master":
            measure(self.groups.values(), self.greeting, self.level.max_lag_s)
        if silent:
            raise ReplyError(f"no sentinel tells where {', '.join(silent)} is")

    def _ask(self, sentinel: Member) -> dict[str, View]:
        """What it says of each master; nothing of those that it does not know, or when it does not answer."""
        words = [
            encode("SENTINEL", word, name)
            for name in self.groups
            for word in ("MASTER", "GET-MASTER-ADDR-BY-NAME", "REPLICAS")
        ]
        answers = ask_all(sentinel.lane(self.seed_greeting), words, ADMIN)
        found: dict[str, View] = {}
        for index, name in enumerate(self.groups):
            three = answers[3 * index : 3 * index + 3]
            try:
                found[name] = _view(name, [one for one in three if isinstance(one, bytes)])
            except ReplyError:
                sentinel.errors["protocol"] += any(isinstance(one, bytes) for one in three)
        return found

    def _choose(self, name: str, group: Group, told: list[View]) -> None:
        """The newest that is true: a sentinel alone may be mistaken, whatever epoch it names."""
        newest: dict[Address, View] = {}
        for view in sorted(told, key=lambda view: view.epoch, reverse=True):
            newest.setdefault(view.master, view)
        for view in newest.values():
            if self._take(name, group, view, 2 * sum(one.master == view.master for one in told) > len(told)):
                return
        self.doubt()

    def _take(self, name: str, group: Group, view: View, by_most: bool) -> bool:
        """This is where the master is, if it says so itself. by_most: do most of the sentinels say so?"""
        master = group.master
        if (master.server.host, master.server.port) != view.master:
            new = self._coming(name, view.master, None if isinstance(master, Nobody) else master)
            if not self._is_master(new, by_most and (isinstance(master, Nobody) or master.is_down)):
                return False
            del self.coming[name]
            log.info("topology.master", instance=self.instance, node=name, address=new.server.address)
            self.members[name] = new
            group.offsets.clear()
            group.turn_to(new, [])
            master.close()
            master = new
            self._find_homes()
        replicas = [Server(host=host, port=port) for host, port in view.replicas if (host, port) != view.master]
        group.turn_to(master, [self.member(server) for server in replicas])
        master.touch()
        self.remembered[name].put(view.master)
        return True

    def _recall(self, name: str, group: Group) -> None:
        """No sentinel answers, and this worker has never heard of the master: it is where another worker knew it, if
        it says there that it is a master still. Its replicas are those that it names."""
        address = self.remembered[name].get() if isinstance(group.master, Nobody) else None
        if address is None:
            return
        try:
            role = parse(ask(self._coming(name, address, None).lane(self.greeting), ROLE, ADMIN))
            kind, _, rows = cast(list[Any], role)
            replicas = tuple((host.decode(), int(port)) for host, port, _ in rows) if kind == b"master" else None
        except (BackendError, ReplyError, ValueError, TypeError, AttributeError):
            return  # it is looked again soon
        if replicas is not None and self._take(name, group, View(-1, address, replicas), False):
            log.info("topology.recalled", instance=self.instance, node=name, address=":".join(map(str, address)))

    def _coming(self, name: str, address: Address, before: Member | None) -> Member:
        """The one that may be the master now; the same one as long as it is asked about."""
        found = self.coming.get(name)
        if found is None or (found.server.host, found.server.port) != address:
            if found is not None:
                found.close()
            found = self.coming[name] = self._member_of(name, address, before)
        return found

    def _is_master(self, member: Member, or_silent: bool) -> bool:
        """Sentinels may be behind, and a server that was promoted may not know it yet. or_silent: one that does not
        answer is taken for it, too, since there is no better one."""
        try:
            role = parse(ask(member.lane(self.greeting), ROLE, ADMIN))
        except BackendError:
            return or_silent
        except ReplyError:
            return False
        return isinstance(role, list) and role[:1] == [b"master"]

    def _member_of(self, name: str, address: Address, before: Member | None) -> Member:
        server = Server(host=address[0], port=address[1], name=name)
        return Member(self.instance, self.level, server, self.parser, self.greeting, before)

    def _find_homes(self) -> None:
        self.homes = [group.home for group in self.groups.values()]
        self.show()

    # ---- listening

    def _listen(self) -> None:
        """The body of a greenlet: one sentinel is listened to. Who is deaf for a while looks every second anyway."""
        while True:
            sentinel = choice(self.seeds)
            try:
                sock = sentinel.connect(self.seed_greeting)
            except BackendError:
                gevent.sleep(LISTEN_AGAIN_S)
                continue
            sentinel.relays[sock] = sentinel
            try:
                sock.settimeout(None)
                sock.sendall(SUBSCRIBE)
                while sock.recv(65536):
                    self.doubt()
            except OSError as error:
                log.debug("topology.deaf", instance=self.instance, node=sentinel.label, why=str(error))
            finally:
                sentinel.relays.pop(sock, None)
                sock.close()
            gevent.sleep(LISTEN_AGAIN_S)

    follows: ClassVar = {
        b"READONLY": Followed.doubtful,
        b"LOADING": Followed.wait,
        b"MASTERDOWN": Followed.unfit,
    }


def _view(name: str, answers: list[bytes]) -> View:
    """Raises ReplyError."""
    try:
        master, address, replicas = (parse(answer) for answer in answers)
        rows = [read_pairs(row) for row in replicas]
        places = tuple((row["ip"], int(row["port"])) for row in rows if not BAD & set(row["flags"].split(",")))
        host, port = address
        return View(int(read_pairs(master)["config-epoch"]), (host.decode(), int(port)), places)
    except (ValueError, TypeError, LookupError, AttributeError) as fault:
        raise ReplyError(f"what the sentinel says of '{name}' can't be read") from fault
