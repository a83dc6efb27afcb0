# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One redis client: the walk over its requests.

Here is the way of nearly all requests: one key at a fixed place, or several keys that are split. Everything else is
taken apart into words and handed to `treat.treat`, which knows one function per treatment.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import cython

from hyper_proxy.common.errors import ClientError, HyperProxyError
from hyper_proxy.common.plugin_error import PluginError
from hyper_proxy.protocol.redis import asked, conversation, leveled, treat, wording
from hyper_proxy.protocol.redis.commands import COMMANDS
from hyper_proxy.protocol.redis.encode import bulk, error, null
from hyper_proxy.protocol.redis.framing import Framer, given_bytes, join_words, split_line, words
from hyper_proxy.protocol.redis.merging import SPLITS
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.stats.plugin_faults import report
from hyper_proxy.storage.cache import NOTHING
from hyper_proxy.tunnel.levels import Levels

if not cython.compiled:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.protocol.observed import ODD, PLAIN, READ
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.fanout import Part, Split
    from hyper_proxy.protocol.session import Session
    from hyper_proxy.stats.access import Sight
    from hyper_proxy.tunnel.descent import Descent

if TYPE_CHECKING:
    from hyper_proxy.config.model import Instance
    from hyper_proxy.entry.client import Client
    from hyper_proxy.front import Front
    from hyper_proxy.protocol.look import Asked
    from hyper_proxy.protocol.redis.subscriber import Subscriber
    from hyper_proxy.protocol.redis.transaction import Transaction

SINGLE = 0  # hyper_proxy.protocol.redis.command has all treatments
SPLIT = 2
CODES = {"loading": "LOADING"}  # by kind of failure, where clients know a code for it
STRANGER_WORDS = 10  # before AUTH, as in redis
STRANGER_BYTES = 16384
GET: Command = COMMANDS[b"get"]
MGET: Command = COMMANDS[b"mget"]
MAX_WORKERS = 4096  # the worker's slot is part of a client's id, so ids are unique in the fleet


@cython.cclass
class RedisSession(Session):
    """What one redis client has said: database, RESP version, name, user, transaction.

    `special` is set whenever a request can't take the short way: before AUTH, inside a transaction, with CLIENT REPLY
    OFF, or when the storage is not redis.
    """

    sequence: cython.longlong  # the client's number in this worker
    id: cython.longlong  # in the fleet
    name: bytes
    resp: cython.int
    db: cython.int
    user: str
    lib_name: bytes
    lib_ver: bytes
    created: cython.double
    authenticated: cython.bint
    transaction: Transaction | None
    subscriber: Subscriber | None
    replies: cython.int  # CLIENT REPLY: conversation.ON, OFF or SKIP
    special: cython.bint
    leveled: cython.bint  # are the lanes those of the first of several levels?
    storage: Any
    placement: Placement
    framer: Framer
    max_key: cython.Py_ssize_t
    last_name: bytes
    last_command: Command | None

    def __init__(self, front: Front, client: Client) -> None:
        self.sequence = next(front.sequence)
        self.id = self.sequence * MAX_WORKERS + front.slot
        self.name = b""
        self.resp = 2
        self.db = 0
        self.user = "default"
        self.lib_name = b""
        self.lib_ver = b""
        self.created = monotonic()
        self.authenticated = not front.snapshot.instance.password
        self.transaction = None
        self.subscriber = None
        self.replies = conversation.ON
        self.last_name = b""
        self.last_command = None
        super().__init__(front, client)

    def adopt(self) -> None:
        snapshot = self.snapshot
        limits = snapshot.instance.limits
        self.max_key = limits.max_key_bytes
        self.refresh()

    def refresh(self) -> None:
        """Follow a change of database, RESP version, transaction or CLIENT REPLY."""
        storage = self.storage = self.snapshot.storage
        limits = self.snapshot.instance.limits
        words, size = limits.max_arguments, limits.max_value_bytes
        if not self.authenticated:
            words, size = min(words, STRANGER_WORDS), min(size, STRANGER_BYTES)
        self.framer = Framer(words, size, limits.max_line_bytes)
        self.framer.before_auth = not self.authenticated
        self.placement = self.snapshot.placement
        self.lanes = storage.lanes(self.db, self.resp, self.sequence) if storage.forwards else []
        self.leveled = isinstance(storage, Levels) and storage.tiers[0].cache.kind == "redis"
        if self.leveled:
            top = storage.tiers[0]
            self.placement, self.lanes = top.placement, top.lanes(top.cache.greeting_in(self.resp))
            if not isinstance(self.batch, Descent):
                self.batch = Descent(self.client, self.complete)
            cython.cast(Descent, self.batch).begin_at(top, storage.crowds, null(self.resp), bulk(NOTHING))
        self.special = (
            not (storage.forwards or self.leveled)
            or not self.authenticated
            or self.transaction is not None
            or self.subscriber is not None
            or self.replies != conversation.ON
        )

    @property
    def instance(self) -> Instance:
        """The configuration of the instance that this client is connected to."""
        return self.snapshot.instance

    @property
    def address(self) -> str:
        """The client's address, as CLIENT INFO shows it."""
        return self.client.address

    @property
    def laddr(self) -> str:
        """The proxy's address that the client is connected to."""
        return self.client.local_address

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def walk(self, buf: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
        framer: Framer = self.framer
        n: cython.Py_ssize_t = len(buf)
        depth: cython.Py_ssize_t = self.depth
        command: Command | None
        end: cython.Py_ssize_t = start
        try:
            while start < n and depth > 0:
                end = framer.scan(buf, start)
                if end < 0:
                    self.need = framer.need
                    break
                if framer.argc == 0:
                    start = end
                    continue
                depth -= 1
                if framer.inline:
                    if self.batch.express:
                        break
                    argv: list = split_line(buf[start : end - 1])
                    if argv and not self.handle(join_words(argv), argv):
                        start = end if self.closing else start
                        break
                    start = end
                    continue
                command = self.lookup(buf)
                if (
                    command is not None
                    and not self.special
                    and command.accepts(framer.argc)
                    and (not self.leveled or command is GET or command is MGET)
                ):
                    if command.treatment == SINGLE and command.first == 1:
                        self.forward(command, buf, start, end)
                        start = end
                        continue
                    if command.treatment == SPLIT:
                        self.split(command, buf, start, end)
                        start = end
                        continue
                if self.batch.express:
                    break
                if not self.handle(buf[start:end], words(buf, framer.args, end)):
                    start = end if self.closing else start
                    break
                framer = self.framer  # AUTH and HELLO change it
                start = end
                depth = depth if self.front.snapshot is self.snapshot else 0  # what is behind it goes by the new one
        except ClientError as fault:
            self.batch.add(error(f"ERR {fault}"))
            self.front.stats.error("client")
            self.tally(ADMIN)
            self.closing = True
            framer.argc = 0  # what has been read of it is none
            return n
        except PluginError as fault:
            self.batch.add(self.error_reply(fault))  # nobody knows where this key lives
            return end
        return start

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, rest: bytearray) -> cython.bint:
        try:
            if self.framer.scan(rest, 0) >= 0:
                return True
        except ClientError:
            return True  # the walk meets it again, and answers
        self.need = self.framer.need
        return False

    @cython.cfunc
    def lookup(self, buf: bytes) -> Command | None:
        """The command of the request in the framer; the last one is remembered, for pipelines repeat themselves."""
        p: cython.p_uchar = buf
        start: cython.Py_ssize_t = self.framer.name_start
        size: cython.Py_ssize_t = self.framer.name_end - start
        last: cython.p_uchar = self.last_name
        i: cython.Py_ssize_t = 0
        if size == len(self.last_name):
            while i < size and p[start + i] == last[i]:
                i += 1
            if i == size:
                return self.last_command
        name: bytes = buf[start : start + size]
        command: Command | None = COMMANDS.get(name)
        if command is None:
            command = COMMANDS.get(name.lower())
            if command is None:
                return None
        self.last_name = name
        self.last_command = command
        return command

    @cython.cfunc
    def forward(self, command: Command, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> None:
        """One key: the request goes to its shard as it came."""
        self.tally(command.klass)
        if self.framer.key_end - self.framer.key_start > self.max_key:
            self.refuse_key()
            return
        shard: cython.Py_ssize_t = self.placement.locate(buf, self.framer.key_start, self.framer.key_end)
        lane: Lane = self.lanes[shard]
        raw: bytes = buf if end - start == len(buf) else buf[start:end]
        if self.leveled:
            cython.cast(Descent, self.batch).read(lane, raw, command.klass)
        else:
            self.batch.send(lane, raw, command.klass)

    @cython.cfunc
    def split(self, command: Command, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> None:
        """Several keys: one request for each shard that holds some of them."""
        framer: Framer = self.framer
        kind: Split = SPLITS[command.reduce]
        reducer: Split = kind.fresh()
        self.tally(command.klass)
        if (framer.argc - 1) % reducer.words_per_key:
            self.batch.add(error(b"ERR wrong number of arguments for '%b' command" % command.name))
            self.stats.error("client")
            return
        part: Part
        several: cython.bint = reducer.cut(buf, framer.args, framer.argc, self.placement)
        if reducer.longest > self.max_key:
            self.refuse_key()
        elif several:
            self.batch.reduce_later(reducer)
            for part in reducer.parts:
                self.send_part(command, part.request, part.shard)
        else:
            part = reducer.parts[0]
            self.send_part(command, buf if end - start == len(buf) else buf[start:end], part.shard)

    @cython.cfunc
    def send_part(self, command: Command, raw: object, shard: cython.Py_ssize_t) -> None:
        if self.leveled:
            cython.cast(Descent, self.batch).read(self.lanes[shard], raw, command.klass)
        else:
            self.batch.send(self.lanes[shard], raw, command.klass)

    def handle(self, raw: bytes, argv: list) -> bool:
        """A request that can't take the short way. False: it must wait until the batch before it is answered."""
        return treat.treat(self, raw, argv)

    # --- for levels

    def complete(self, raw: bytes, reply: Any) -> bytes:
        """The whole reply, from below where it lacks something. Raises BackendError."""
        return leveled.complete(self.snapshot.storage, bytes(raw), reply, self)

    # --- for the treatments

    def refuse_key(self) -> None:
        """A key is longer than this instance takes."""
        self.stats.error("client")
        self.batch.add(error(wording.long_key(self.max_key)))

    def locate(self, key: bytes) -> int:
        """The shard of a key."""
        return self.placement.locate(key, 0, len(key))

    def nil(self) -> bytes:
        """Nothing, in the client's RESP version."""
        return null(self.resp)

    def error_reply(self, fault: HyperProxyError) -> bytes:
        self.front.stats.error(fault.kind)
        report(fault, self.snapshot.instance.name)
        return error(f"{CODES.get(fault.kind, 'ERR')} {fault}")

    def misfit(self, shard: int) -> bytes:
        """The error for a node whose reply has not the shape that the request asks for."""
        return self.misfit_of(self.lanes[shard])

    def misfit_of(self, lane: Lane) -> bytes:
        """The same for the node of a lane."""
        return self.error_reply(lane.distrust("its answer does not fit the request"))

    def lanes_of(self, targets: Any) -> list[Lane]:
        """The lanes of some of the storage's nodes, for this client."""
        found: list[Lane] = self.storage.lanes_of(targets, self.db, self.resp, self.sequence)
        return found

    def split_request(self, command: Command, raw: bytes) -> bool:
        """`split` for a request that came the long way."""
        self.framer.scan(raw, 0)
        try:
            self.split(command, raw, 0, len(raw))
        finally:
            self.framer.argc = 0  # its places are those of `raw`, and not of what was read
        return True

    def let_go(self) -> None:
        """End what this client alone holds at the servers."""
        if self.transaction is not None:
            self.transaction.abandon()
        if self.subscriber is not None:
            self.subscriber.close()
            self.subscriber = None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def spot(self, index: cython.Py_ssize_t, sight: Sight) -> cython.int:
        framer: Framer = self.framer
        start: cython.Py_ssize_t = self.seen_from
        end: cython.Py_ssize_t
        if self.need or self.seen is None or self.transaction is not None:
            return ODD  # need: the framer is in the middle of a request
        buf: bytes = self.seen
        try:
            while not (framer.argc and self.is_single(framer.name_start)):
                if start >= self.seen_to:
                    return ODD
                end = framer.scan(buf, start)
                if framer.argc and not (framer.inline and buf[start:end].isspace()):
                    if index == 0:
                        break
                    index -= 1
                start = end
        except ClientError:
            return ODD  # its limits are others now
        if framer.inline:
            return ODD
        command: Command | None = self.lookup(buf)
        if command is None or command.first != 1:
            return ODD
        if framer.argc < -command.arity if command.arity < 0 else framer.argc != command.arity:
            return ODD
        sight.command = command.name
        sight.key_start = framer.key_start
        sight.key_end = framer.key_end
        sight.keys = 1
        if command.treatment == SINGLE:
            return PLAIN if command.klass else READ
        sight.keys = (framer.argc - 1) // command.step
        return PLAIN if command.treatment == SPLIT and sight.keys * command.step == framer.argc - 1 else ODD

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def size(self, reply: bytes) -> cython.Py_ssize_t:
        """The bytes of a string; 0 for anything else."""
        p: cython.p_uchar = reply
        i: cython.Py_ssize_t = 1
        size: cython.Py_ssize_t = 0
        if p[0] != 36:
            return 0
        while 48 <= p[i] <= 57:
            size = size * 10 + (p[i] - 48)
            i += 1
        return size

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def given(self, buf: bytes) -> cython.Py_ssize_t:
        """All that stands behind the key of a write."""
        framer: Framer = self.framer
        command: Command | None = self.last_command
        if command is None or command.treatment != SINGLE:
            return -1
        return given_bytes(buf, framer.key_end + 2, framer.argc - 2)

    def describe(self, buf: bytes, start: int, end: int, index: int) -> Asked | None:
        return asked.describe(buf, start, end, index)

    def sizes(self, request: Asked, reply: bytes) -> list[int] | None:
        return asked.sizes(request, reply)

    def end(self) -> None:
        self.let_go()
