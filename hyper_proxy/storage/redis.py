"""redis as a storage: its greeting, and the lanes of one level's servers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from weakref import WeakSet

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.moving.lane import BEGIN_ANEW, OwnMoveLane
from hyper_proxy.conn_pool.moving.pools import MovingPools
from hyper_proxy.conn_pool.moving.schedule import is_move
from hyper_proxy.conn_pool.moving.way import MoveTarget
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.reply_error import NotSelected, ReplyError
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue
from hyper_proxy.storage.redis_mover import RedisMover
from hyper_proxy.storage.redis_refusal import refusal, words_of
from hyper_proxy.storage.redis_speech import RedisSpeech
from hyper_proxy.storage.redis_words import encode as encode
from hyper_proxy.storage.redis_words import join_words as join_words
from hyper_proxy.storage.resp import RespParser

NO_SUCH = (b"-ERR ", b"-NOPERM ")  # how a server that is well refuses a SELECT
MAX_IDLE = 16  # borrowed lanes kept for the next borrower, per node and greeting


@dataclass(frozen=True, slots=True)
class RedisGreeting:
    """What makes two connections to one redis server different: database and RESP version; the user is the level's.

    readonly: to a replica of a cluster, which answers reads then. cluster: the server must be part of one.
    own_db: the level's; another one is a client's choice. keys: how the configuration's keys of the user begin.
    """

    username: str
    password: str
    db: int
    resp: int
    readonly: bool = False
    cluster: bool = False
    own_db: int = 0
    keys: str = ""

    @classmethod
    def of(cls, level: Level, db: int, resp: int) -> RedisGreeting:
        """For a client's database `db` and RESP version at the servers of a level."""
        cluster = level.topology == "cluster"
        return cls(level.username, level.password, level.db + db, resp, cluster=cluster, own_db=level.db)

    @property
    def probe(self) -> bytes:
        return encode("PING")

    def greet(self, ask: Callable[[bytes], bytes]) -> None:
        """Log in, choose version and database; then make sure that the server answers each question once, and rightly.

        A server that answers too much, or whatever it likes, would hand one client's data to another.
        Raises ReplyError.
        """
        if self.password:
            user = (self.username,) if self.username else ()
            self._expect(b"+OK", "AUTH", ask(encode("AUTH", *user, self.password)))
        if self.resp == 3:
            self._expect(b"%", "HELLO 3", ask(encode("HELLO", 3)))
        if self.db:
            answer = ask(encode("SELECT", self.db))
            if self.db != self.own_db and answer.startswith(NO_SUCH):
                raise NotSelected(words_of(answer))
            self._expect(b"+OK", f"SELECT {self.db}", answer)
        if self.cluster and b"cluster support disabled" in ask(encode("CLUSTER", "KEYSLOT", "key")):
            raise ReplyError("it is no server of a cluster: cluster support is disabled there")
        if self.readonly:
            self._expect(b"+OK", "READONLY", ask(encode("READONLY")))
        self._expect(b"+PONG", "PING", ask(encode("PING")))
        nonce = secrets.token_hex(8).encode()
        answer = ask(encode("ECHO", nonce))
        if answer != b"$%d\r\n%b\r\n" % (len(nonce), nonce) and not answer.startswith(b"-ERR"):
            raise ReplyError("it did not echo what it was sent")

    def _expect(self, prefix: bytes, what: str, answer: bytes) -> None:
        if not answer.startswith(prefix):
            raise refusal(what, answer, self.keys, self.username)


def _inner(lane: Lane) -> Lane:
    return lane.inner if isinstance(lane, OwnMoveLane) else lane


def check_own(level: Level) -> None:
    """Raises ClientError where a client can have no connection of its own."""
    if level.is_mirrored:
        raise ClientError("transactions and commands that wait are not served where writes go to two rooms")


class RedisStorage:
    """The servers of one level. A front that speaks redis forwards to it as it is."""

    forwards = True
    mover: RedisMover | None = None  # where keys move
    follows = False  # may an answer say that a key is elsewhere?

    def __init__(self, instance: str, level: Level, previous: RedisStorage | None = None) -> None:
        self.level = level
        kept = previous.nodes if previous else None
        self.nodes: Pools = self.pools(instance, level, kept)
        self._lanes: dict[tuple[int, int, int], list[Lane]] = {}
        self._idle: dict[tuple[Node, Greeting], list[Lane]] = {}
        self.released = False
        self.halted = False
        # Those whose clients may still be in the middle of something.
        self.elders: WeakSet[RedisStorage] = WeakSet([*previous.elders, previous] if previous else ())
        if isinstance(self.nodes, MovingPools):
            self.nodes.elders = self.elders

    def pools(self, instance: str, level: Level, kept: Pools | None) -> Pools:
        """The servers; `kept` are those of the configuration before."""
        if is_move(level.route):
            self.mover = RedisMover(level)
            return MovingPools(instance, level, self.tongue, kept, self.mover)
        return Pools(instance, level, self.tongue, kept)

    @property
    def tongue(self) -> Tongue:
        """What the servers speak with a client that has said nothing special."""
        return Tongue(RespParser, self.greeting(0, 2), RedisSpeech())

    def understand(self, keys_of: Callable[[bytes], list[bytes]]) -> None:
        """How the keys of a request are found, which only matters where they move."""
        if self.mover is not None:
            self.mover.keys_of = keys_of

    def greeting(self, db: int, resp: int) -> RedisGreeting:
        """The greeting for a client's database `db` and RESP version."""
        return RedisGreeting.of(self.level, db, resp)

    def lanes(self, db: int, resp: int, client: int) -> list[Lane]:
        """The shared lanes by shard. One client always gets the same ones, so its requests to a node stay in order."""
        key = (db, resp, client % self.level.connections)
        lanes = self._lanes.get(key)
        if lanes is None:
            lanes = self._lanes[key] = self.lanes_of(self.nodes.targets, *key)
        return lanes

    def lanes_of(self, targets: Iterable[Target], db: int, resp: int, client: int) -> list[Lane]:
        """Those of some nodes: of all of them, or of the homes."""
        greeting = self.greeting(db, resp)
        return [target.lane(greeting, client % self.level.connections) for target in targets]

    def receivers(self, name: bytes, read: bool) -> list[Target]:
        """Who gets a command that is for all servers. Raises ClientError when it can't be served."""
        return self.nodes.receivers(name, read)

    def moved(self, lane: Lane, reply: bytes) -> Node | None:
        """Where the key of a request is, if the reply on a client's own lane says that it is elsewhere."""
        return None

    def plain(self, lane: Lane, reply: bytes) -> bytes:
        """The reply to one command of a transaction, as the client can understand it."""
        return reply

    def borrow(self, shard: int, db: int, resp: int, patient: bool = False) -> Lane:
        """A lane for one client alone: an idle one, or a new one."""
        check_own(self.level)
        target = self.nodes.targets[shard]
        if not isinstance(target, MoveTarget):
            return self.borrow_of(target.home, db, resp, patient)
        return target.own(lambda node: self.borrow_of(node, db, resp, patient), self.greeting(db, resp))

    def borrow_of(self, node: Node, db: int, resp: int, patient: bool = False) -> Lane:
        """The same to this server."""
        if self.halted:
            raise node.error("moving", BEGIN_ANEW)
        greeting = self.greeting(db, resp)
        idle = self._idle.get((node, greeting), [])
        while idle:
            lane = idle.pop()
            if lane.dead is None:
                break
        else:
            lane = node.private_lane(greeting)
        lane.be_patient(patient)
        return lane

    def is_lost(self, lane: Lane) -> bool:
        """Is a borrowed lane one to a server that others do not write to any more?"""
        return _inner(lane).node.gone

    def has_ended(self, lane: Lane) -> bool:
        """Is the connection of a borrowed lane lost?"""
        return _inner(lane).dead is not None

    def give_back(self, lane: Lane) -> None:
        """A borrowed lane that the server holds no more state for."""
        lane = _inner(lane)
        idle = self._idle.setdefault((lane.node, lane.greeting), [])
        if lane.dead is None and not lane.leaving and len(idle) < MAX_IDLE and not self.released:
            idle.append(lane)
        else:
            lane.abandon()

    def halt(self) -> None:
        """Keys are elsewhere from now on: who began under this configuration gets no more lanes of their own."""
        self.halted = True

    def release(self, successor: RedisStorage | None) -> None:
        """Let go of the nodes that the successor has not taken over."""
        self.released = True
        self.nodes.close(successor.nodes if successor else None)
        for lanes in self._idle.values():
            for lane in lanes:
                lane.abandon()
