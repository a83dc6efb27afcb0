"""redis as a key space of the proxy's own: for clients of other protocols, and below other levels.

A value is a string of redis, as any client of that server sees it. redis has no place for memcache's flags and keeps no
versions: flags are refused, and so is what compares versions. A key that holds a hash, a list or the like reads as
absent; whoever changes it gets an error, but for who puts a value there, as in redis.

Several keys of one server change in one step, a script. What depends on the values there is made of a read and a script
that compares them before it writes; it begins again when somebody else was faster. Who has the same value and the same
end before him as when he read may go on: what he makes of it is the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.asking import ask
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.nodes import Nodes
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE
from hyper_proxy.storage import redis_scripts as scripts
from hyper_proxy.storage.again import BUSY, again
from hyper_proxy.storage.edits import last_edits
from hyper_proxy.storage.keyvalue import (
    Change,
    Edit,
    Expire,
    Item,
    KeyValue,
    NotANumber,
    NumberOverflow,
    Put,
    Remove,
)
from hyper_proxy.storage.redis import RedisGreeting, encode
from hyper_proxy.storage.redis_cache import elements
from hyper_proxy.storage.resp import DROPPED, RespParser
from hyper_proxy.storage.sharded import Sharded
from hyper_proxy.storage.turns import Turns

T = TypeVar("T")

NEVER = b"-1"
ANY = (b"any", b"", b"")
ABSENT = (b"absent", b"", b"")
KEEP = (b"keep", b"", b"")
REMOVE_IT = (b"remove", b"", b"")
OTHER_TYPE = "the key holds another type of value than a string"
ERRORS = {b"OOM": "full", b"READONLY": "unwritable", b"MISCONF": "unwritable", b"NOPERM": "login", b"NOAUTH": "login"}
"""First words of redis' errors -> kinds of ours; all others are "protocol"."""

State = tuple[bytes, int] | None  # value and end in milliseconds; None when there is no such key


class RedisValues(Sharded):
    """The servers of one level."""

    kind = "redis"
    forwards = False
    keeps_versions = False

    def __init__(self, instance: str, level: Level, previous: RedisValues | None = None) -> None:
        greeting = RedisGreeting.of(level, 0, 2)
        kept = previous.nodes if previous else None
        self.nodes: Nodes = Nodes(instance, level, RespParser, greeting, kept)
        super().__init__([RedisShard(node, greeting, level.connections) for node in self.nodes])

    def release(self, successor: RedisValues | None) -> None:
        """Let go of the nodes that the successor has not taken over."""
        self.nodes.close(successor.nodes if successor else None)


class RedisShard(KeyValue):
    """One server, over the connections that all clients of a worker share."""

    kind = "redis"
    keeps_versions = False

    def __init__(self, node: Target, greeting: RedisGreeting, connections: int) -> None:
        self.node = node
        self.greeting = greeting
        self.connections = connections
        self._turns = Turns()
        self._next = count()

    # ---- reading

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        lane = self._lane()
        reply = self._answer(lane, ask(lane, encode("MGET", *keys), READ))
        try:
            values = list(elements(reply))
        except (ReplyError, ValueError) as fault:
            raise lane.distrust(str(fault)) from None
        if len(values) != len(keys):
            raise lane.distrust(f"MGET of {len(keys)} keys was answered {reply[:80]!r}")
        return [None if value is None else Item(value, 0, None, 0) for value in values]

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        return [_item(state) for state in self._states(keys)]

    def count(self) -> int:
        """Keys of all types, as DBSIZE counts them."""
        lane = self._lane()
        return self._integer(lane, ask(lane, encode("DBSIZE"), READ))

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        lane = self._lane()
        reply = self._answer(lane, ask(lane, encode("SCAN", cursor, "COUNT", limit, "TYPE", "string"), READ))
        words = [word for word in _flat(lane, reply) if word is not None]
        return int(words[0]), words[1:]

    # ---- writing

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        names = list(dict.fromkeys(keys))
        with self._turns.of(names):
            found = dict(zip(names, self._states(names), strict=True))
            for _ in again(self.node.home.read_s):  # others are other workers: those of one wait for each other
                edits, result = change([_item(found[key]) for key in keys])
                last = last_edits(keys, edits)
                now = self._change([(key, _seen(found[key]), _edit(last[key])) for key in names], WRITE)
                if now is None:
                    return result, (0,) * len(keys)
                found = dict(zip(names, now, strict=True))
        raise self.node.home.error("busy", BUSY)

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        self._change([(key, ANY, _edit(put)) for key, put in dict(entries).items()], IDEMPOTENT)

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        return self._change([(key, ABSENT, _edit(put)) for key, put in dict(entries).items()], WRITE) is None

    def delete_many(self, keys: Sequence[bytes]) -> int:
        lane = self._lane()
        return self._integer(lane, ask(lane, encode("UNLINK", *keys), WRITE))

    def incr_signed(self, key: bytes, delta: int) -> int:
        lane = self._lane()
        return self._integer(lane, ask(lane, encode("INCRBY", key, delta), WRITE))

    def persist(self, key: bytes) -> bool:
        lane = self._lane()
        return self._integer(lane, ask(lane, encode("PERSIST", key), WRITE)) == 1

    def clear(self) -> None:
        lane = self._lane()
        self._answer(lane, ask(lane, encode("FLUSHDB"), ADMIN))

    # ---- scripts

    def _states(self, keys: Sequence[bytes]) -> list[State]:
        lane = self._lane()
        return _states_in(lane, self._run(lane, scripts.READ, keys, (), READ), len(keys))

    def _change(self, rows: Sequence[tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]], klass: int
                ) -> list[State] | None:  # fmt: skip
        """Do it, and return None; or, when a key is not as it was expected, how all of them are."""
        lane = self._lane()
        words = [word for _, before, edit in rows for word in (*before, *edit)]
        reply = self._run(lane, scripts.CHANGE, [key for key, _, _ in rows], words, klass)
        return None if reply == b"$4\r\ndone\r\n" else _states_in(lane, reply, len(rows))

    def _run(self, lane: Lane, script: scripts.Script, keys: Sequence[bytes], words: Sequence[bytes], klass: int
             ) -> bytes:  # fmt: skip
        rest: tuple[bytes | int, ...] = (len(keys), *keys, *words)
        reply = ask(lane, encode("EVALSHA", script.digest, *rest), klass)
        if reply.startswith(b"-NOSCRIPT"):  # it has not been run
            reply = ask(lane, encode("EVAL", script.text, *rest), klass)
        return self._answer(lane, reply)

    # ---- the server

    def _lane(self) -> Lane:
        return self.node.lane(self.greeting, next(self._next) % self.connections)

    def _integer(self, lane: Lane, reply: bytes) -> int:
        self._answer(lane, reply)
        if reply[:1] != b":":
            raise lane.distrust(f"a number was wanted, and {reply[:80]!r} came")
        return int(reply[1:-2])

    def _answer(self, lane: Lane, reply: bytes) -> bytes:
        """The reply, which is no error. Raises BackendError, or ClientError for what is the client's fault."""
        if reply[:1] != b"-":
            return reply
        if reply == DROPPED:
            raise lane.node.unread()
        text = reply[1:-2].decode(errors="replace")
        if b"WRONGTYPE" in reply:
            raise ClientError(OTHER_TYPE)
        if b"not an integer" in reply:
            raise NotANumber
        if b"would overflow" in reply:
            raise NumberOverflow
        if b"invalid bulk length" in reply:  # proto-max-bulk-len
            raise lane.node.error("size", f"it answered {text}")
        raise lane.node.error(ERRORS.get(reply[1:].split(b" ", 1)[0], "protocol"), f"it answered {text}")


# ---- words


def _seen(state: State) -> tuple[bytes, ...]:
    return ABSENT if state is None else (b"present", state[0], b"%d" % state[1])


def _item(state: State) -> Item | None:
    if state is None:
        return None
    value, ends = state
    return Item(value, 0, None if ends < 0 else ends / 1000, 0)


def _edit(edit: Edit) -> tuple[bytes, ...]:
    if edit is None:
        return KEEP
    if isinstance(edit, Remove) or (edit.expires_at is not None and edit.expires_at <= time.time()):
        return REMOVE_IT
    ends = NEVER if edit.expires_at is None else b"%d" % round(edit.expires_at * 1000)
    if isinstance(edit, Expire):
        return (b"expire", b"", ends)
    check_flags(edit)
    return (b"put", edit.value, ends)


def check_flags(put: Put) -> None:
    """Raises ClientError for flags that a client wants to have back."""
    if put.flags:
        raise ClientError("redis has no place for flags: a value with flags other than 0 can't be stored there")


def _states_in(lane: Lane, reply: bytes, keys: int) -> list[State]:
    words = _flat(lane, reply)
    if len(words) != 2 * keys:
        raise lane.distrust(f"a script about {keys} keys was answered {reply[:80]!r}")
    pairs = zip(words[::2], words[1::2], strict=True)
    return [None if value is None else (value, int(ends or NEVER)) for value, ends in pairs]


def _flat(lane: Lane, reply: bytes) -> list[bytes | None]:
    """Strings, numbers and nils of an array, nested or not, in order. The parser has found the reply whole."""
    found: list[bytes | None] = []
    at = 0
    while at < len(reply):
        end = reply.index(b"\r\n", at)
        kind, word = reply[at : at + 1], reply[at + 1 : end]
        at = end + 2
        if kind == b"$" and word != NEVER:
            found.append(reply[at : at + int(word)])
            at += int(word) + 2
        elif kind in b"$:":
            found.append(word if kind == b":" else None)
        elif kind != b"*":
            raise lane.distrust(f"an array was wanted, and {reply[:80]!r} came")
    return found
