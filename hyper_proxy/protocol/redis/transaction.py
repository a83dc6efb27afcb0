"""MULTI and WATCH: a transaction lives on one shard, on a lane that is this client's alone.

The shard is that of the first key; commands without a key that come before it are held back until it is known. On the
lane the server does what it always does: it queues, checks and executes; its replies are passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.protocol.redis import command, commands, encode, wording
from hyper_proxy.protocol.redis.framing import join_words
from hyper_proxy.protocol.redis.reach import check_named, in_server_db
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.tunnel.batch import Reducer

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.session import RedisSession

MULTI = join_words([b"MULTI"])
EXEC = join_words([b"EXEC"])
DISCARD = join_words([b"DISCARD"])
UNWATCH = join_words([b"UNWATCH"])
ENDED = b"-EXECABORT"
"""The one error to EXEC that ends a transaction for sure: a redis before 6.2 that is busy with a script, or loads its
keys, refuses EXEC, and goes on queueing."""
REMOVED = "a reload has taken its server away: begin anew"
ENDS = frozenset({b"auth", b"client|reply", b"discard", b"exec", b"hello", b"multi", b"quit", b"reset", b"watch"})
# What the proxy answers itself, or asks of every node, has no place inside a transaction on one server.
QUEUED = frozenset({command.SINGLE, command.SAME_SHARD, command.SPLIT, command.ANY, command.BLOCK})
# But for these, which a server answers alike. The others would reach the server itself, behind the proxy's answers:
# CONFIG GET would tell its password, CLIENT TRACKING would change a connection that other clients get afterwards.
ALIKE = frozenset({b"echo", b"ping", b"time", b"unwatch", b"select"})


class Queued(Reducer):
    """The reply to one command between MULTI and EXEC; where it failed, the others must not be executed without it."""

    def __init__(self, transaction: Transaction) -> None:
        self.count = 1
        self.transaction = transaction

    def reduce(self, replies: list[bytes | BackendError], session: RedisSession) -> bytes:
        (reply,) = replies
        if isinstance(reply, BackendError):
            self.transaction.spoil()
            return session.error_reply(reply)
        said: bytes = self.transaction.storage.plain(self.transaction.lane, reply)
        return said


class Transaction:
    """From MULTI or the first WATCH to EXEC, DISCARD or UNWATCH."""

    def __init__(self, session: RedisSession) -> None:
        self.session = session
        # One configuration from its first command to its last, whatever is reloaded meanwhile.
        self.storage = session.storage
        self.placement = session.placement
        self.begun = False  # MULTI was said
        self.spoilt = False  # a command was refused: EXEC will not execute
        self.forgotten = False  # what was watched first is not watched any more: EXEC will answer nil
        self.shard = -1
        self.lane: Lane | None = None
        self.opened = False  # MULTI was sent
        self.altered = False  # the lane has another database or RESP version than it was borrowed with
        self.held: list[tuple[int, bytes]] = []
        self.held_bytes = 0

    def takes(self, row: Command) -> bool:
        """Is this command queued, instead of done?"""
        return self.begun and row.name not in ENDS

    def begin(self) -> None:
        """MULTI."""
        if self.begun:
            raise wording.Misplaced(wording.NESTED_MULTI)
        self.begun = True

    def spoil(self) -> None:
        """A command could not be queued."""
        if self.begun:
            self.spoilt = True

    def watch(self, argv: list[bytes]) -> bytes:
        """WATCH: pins the shard. When the first one fails nothing is watched, and nothing pinned."""
        if self.begun:
            raise wording.Misplaced(wording.WATCH_INSIDE_MULTI)
        self._notice_loss()
        is_first = self.lane is None and not self.forgotten
        try:
            return self._watch(argv, is_first)
        except BackendError:
            if is_first:
                self.abandon()
            raise

    def _watch(self, argv: list[bytes], is_first: bool) -> bytes:
        shards = {self._locate(key) for key in argv[1:]}
        self._pin(shards)
        self.session.refresh()
        request = join_words(argv)
        reply = self.session.batch.ask(self.lane, request, ADMIN)
        node = self.storage.moved(self.lane, reply)
        if node is None or not self.lane or self.altered:
            return self.storage.plain(self.lane, reply)
        self.lane.abandon()
        self.forgotten = not is_first
        self.lane = self.storage.borrow_of(node, self.session.db, self.session.resp)
        return self.storage.plain(self.lane, self.session.batch.ask(self.lane, request, ADMIN))

    def follow(self, request: bytes) -> None:
        """The client changes its database or RESP version after WATCH: so does its lane. Raises BackendError."""
        if self.begun:
            raise wording.ErrorReply(wording.NOT_IN_MULTI)
        self._notice_loss()
        if self.lane is not None:
            self.altered = True
            reply = self.session.batch.ask(self.lane, request, ADMIN)
            if reply.startswith(b"-"):
                raise wording.ErrorReply(reply[1:-2])

    def queue(self, row: Command, raw: bytes, argv: list[bytes]) -> bool:
        """One command between MULTI and EXEC."""
        session = self.session
        if row.treatment not in QUEUED and row.name not in ALIKE:
            raise wording.ErrorReply(wording.NOT_IN_MULTI)
        if row.name == b"select":
            raise wording.ErrorReply(b"ERR SELECT inside MULTI is not served: its connection has its database already")
        if not self.opened and session.batch.slots:
            return False  # MULTI is asked first, alone
        session.tally(row.klass)
        shards = {self._locate(argv[position]) for position in commands.keys_of(row, argv)}
        check_named(row, argv, self.placement.shards)
        raw = in_server_db(session.instance, row, raw, argv)
        if not shards and self.lane is None:
            self.held_bytes += len(raw)
            if self.held_bytes > session.instance.limits.max_request_bytes:
                raise wording.ErrorReply(b"ERR the transaction is longer than limits.max_request_bytes")
            self.held.append((row.klass, raw))
            session.batch.add(encode.QUEUED)
            return True
        is_first = bool(shards) and self.lane is None
        if shards:
            self._pin(shards)
        self._open()
        if is_first and self.storage.follows:
            session.batch.add(self._queue_first(row.klass, raw))
            return True
        session.batch.reduce_later(Queued(self))
        session.batch.send(self.lane, raw, row.klass)
        return True

    def _queue_first(self, klass: int, raw: bytes) -> bytes:
        """The first command with a key: where its slot has moved, nothing is lost by beginning anew at its new home."""
        batch = self.session.batch
        try:
            reply = batch.ask(self.lane, raw, klass)
            node = self.storage.moved(self.lane, reply)
            if node is not None and self.lane is not None:
                self.lane.abandon()
                self.lane = self.storage.borrow_of(node, self.session.db, self.session.resp)
                self.opened = False
                self._open()
                reply = batch.ask(self.lane, raw, klass)
        except BackendError:
            self.spoil()
            raise
        return self.storage.plain(self.lane, reply)

    def execute(self) -> bytes:
        """EXEC: the server's answer."""
        session = self.session
        if self.spoilt:
            self.abandon()
            raise wording.ErrorReply(wording.EXEC_ABORT)
        if self.forgotten:
            self.abandon()
            return encode.null_array(session.resp)
        if self.lane is None and not self.held:
            self.abandon()
            return encode.EMPTY_ARRAY
        try:
            if self.lane is None:
                self._pin({0})
            self._check_server()
            self._open()
            self._check_room()
            reply = session.batch.ask(self.lane, EXEC, ADMIN)
        except (BackendError, ClientError):
            self.abandon()
            raise
        if self.altered or (reply.startswith(b"-") and not reply.startswith(ENDED)):
            self.abandon()
        else:
            self.storage.give_back(self.lane)
            self._end()
        return reply

    def undo(self) -> None:
        """DISCARD or UNWATCH: its server forgets it, and others get the lane."""
        lane = self.lane
        if lane is None or self.altered:
            self.abandon()
            return
        try:
            reply = self.session.batch.ask(lane, DISCARD if self.opened else UNWATCH, ADMIN)
        except BackendError:  # with its connection it is forgotten as well
            reply = b""
        if reply == encode.OK:
            self.storage.give_back(lane)
            self._end()
        else:
            self.abandon()

    def abandon(self) -> None:
        """Without EXEC: the lane is closed, and the server forgets what was queued and watched on it."""
        if self.lane is not None:
            self.lane.abandon()
        self._end()

    def _end(self) -> None:
        self.lane = None
        self.session.transaction = None
        self.session.refresh()

    def _locate(self, key: bytes) -> int:
        return self.placement.locate(key, 0, len(key))

    def _pin(self, shards: set[int]) -> None:
        if len(shards) > 1 or (self.lane is not None and shards != {self.shard}):
            raise wording.ErrorReply(wording.CROSS_SHARD)
        if self.lane is None:
            session = self.session
            (self.shard,) = shards
            self.lane = self.storage.borrow(self.shard, session.db, session.resp)
        self._check_server()

    def _notice_loss(self) -> None:
        """Between WATCH and MULTI: with its connection, or its server, all that was watched is lost. What the client
        does from now on is another attempt, at the servers of now; as nobody knows what became of the keys, it is one
        that fails as if they had been changed.
        """
        if self.lane is not None and (self.storage.has_ended(self.lane) or self.storage.is_lost(self.lane)):
            self.lane.abandon()
            self.lane, self.shard, self.altered, self.forgotten = None, -1, False, True
            self.storage, self.placement = self.session.storage, self.session.placement

    def _check_server(self) -> None:
        """Raises BackendError when others do not write there any more: what they have written since, it would miss."""
        if self.lane is not None and self.storage.is_lost(self.lane):
            raise self.lane.node.error("closed", REMOVED)

    def _check_room(self) -> None:
        """Raises BackendError when its peer in another room serves by now; the lane itself is closed somewhat later."""
        standing = self.lane.node.standing if self.lane is not None else None
        if self.lane is not None and standing is not None and not standing.serves:
            raise self.lane.node.error("room", "the other room serves in its place")

    def _open(self) -> None:
        """Say MULTI, once, then what was held back: what a server does not queue, it would do at once.

        Raises ErrorReply in the server's words, or BackendError; the transaction is spoilt then.
        """
        if self.opened or self.lane is None:
            return
        try:
            reply = self.session.batch.ask(self.lane, MULTI, ADMIN)
            if reply != encode.OK:
                raise wording.ErrorReply(reply[1:-2])
            self.opened = True
            for klass, raw in self.held:
                self.session.batch.ask(self.lane, raw, klass)
        except BackendError:
            self.spoil()
            raise
