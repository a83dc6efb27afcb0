"""memcached (1.6 or later) as a key space of the proxy's own: for clients of other protocols, and below other levels.

Value, flags and version are memcached's own, times of expiry are whole seconds, rounded up. Each key changes for
itself: what must change several keys together, or depends on several, is refused; so is what lists keys. A key with
blanks or control characters is sent in base64 (flag b of the meta commands), by which other clients reach it too.

What depends on the value there is made of a read and a write under the condition that the version is the same. Nothing
keeps memcached from forgetting what it has no more room for: then the key is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

from hyper_proxy.common.errors import BackendError, ClientError
from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.asking import ask, ask_all
from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.nodes import Nodes
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE
from hyper_proxy.storage import memcache_words as words
from hyper_proxy.storage.again import BUSY, again
from hyper_proxy.storage.edits import last_edits
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Mode, NotANumber, Outcome, Put
from hyper_proxy.storage.memcache import MemcacheGreeting
from hyper_proxy.storage.memcache_cache import values_in
from hyper_proxy.storage.memcache_replies import DROPPED, ERRORS, MemcacheParser
from hyper_proxy.storage.sharded import Sharded
from hyper_proxy.storage.turns import Turns

T = TypeVar("T")

TOGETHER = "memcached changes each key for itself: this request needs several to change together"
UNLISTED = "memcached can't list its keys"
MODES = {Mode.SET: b"", Mode.ADD: b" ME", Mode.REPLACE: b" MR"}
OUTCOMES = {
    b"HD": Outcome.STORED, b"NS": Outcome.NOT_STORED, b"EX": Outcome.EXISTS, b"NF": Outcome.NOT_FOUND,
}  # fmt: skip
KINDS = {b"object too large": "size", b"out of memory": "full"}
"""What memcached says in its errors -> kinds of ours; all others are "protocol"."""


def check_alone(keys: Sequence[bytes]) -> None:
    """Raises ClientError for several keys that must change together."""
    if len(set(keys)) > 1:
        raise ClientError(TOGETHER)


class MemcacheValues(Sharded):
    """The servers of one level."""

    kind = "memcache"
    forwards = False

    def __init__(self, instance: str, level: Level, previous: MemcacheValues | None = None) -> None:
        kept = previous.nodes if previous else None
        self.nodes: Nodes = Nodes(instance, level, MemcacheParser, MemcacheGreeting(), kept)
        super().__init__([MemcacheShard(node, level.connections) for node in self.nodes])

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        check_alone(keys)
        return super().update(keys, change)

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        check_alone([key for key, _ in entries])
        return super().put_many_if_absent(entries)

    def release(self, successor: MemcacheValues | None) -> None:
        """Let go of the nodes that the successor has not taken over."""
        self.nodes.close(successor.nodes if successor else None)


class MemcacheShard(KeyValue):
    """One server, over the connections that all clients of a worker share."""

    kind = "memcache"

    def __init__(self, node: Node, connections: int) -> None:
        self.node = node
        self.connections = connections
        self._turns = Turns()
        self._next = count()

    # ---- reading

    def read_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        if not all(words.is_plain(key) for key in keys):
            return self.get_many(keys)
        lane = self._lane()
        reply = ask(lane, b"get %b\r\n" % b" ".join(keys), READ)
        self._check(lane, reply)
        try:
            found = values_in(reply, keys)
        except (ReplyError, ValueError) as fault:
            raise lane.distrust(str(fault)) from None
        return [Item(*found[key], None, 0) if key in found else None for key in keys]

    def get_many(self, keys: Sequence[bytes]) -> list[Item | None]:
        """Each key of its own moment."""
        return self._items([words.reading(key) for key in keys], READ)

    def count(self) -> int:
        """As memcached counts them: with those whose time is over, until it has noticed."""
        lane = self._lane()
        reply = ask(lane, b"stats\r\n", READ)
        for line in reply.split(b"\r\n"):
            if line.startswith(b"STAT curr_items "):
                return int(line.split()[2])
        self._check(lane, reply)
        raise lane.distrust(f"stats was answered {reply[:80]!r}")

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        raise ClientError(UNLISTED)

    # ---- writing

    def update(self, keys: Sequence[bytes], change: Change[T]) -> tuple[T, tuple[int, ...]]:
        key = keys[0]
        with self._turns.of([key]):
            for _ in again(self.node.read_s):  # others are other workers: those of one wait for each other
                item = self.get_many([key])[0]
                if item is not None and not item.version:
                    raise self.node.error("protocol", "it keeps no versions (memcached -C): nothing can be changed")
                edits, result = change([item] * len(keys))
                version = self._apply(key, item, last_edits(keys, edits)[key])
                if version is not None:
                    return result, tuple(version if isinstance(edit, Put) else 0 for edit in edits)
        raise self.node.error("busy", BUSY)

    def _apply(self, key: bytes, item: Item | None, edit: Edit) -> int | None:
        """Carry it out: the version that is there now, 0 when that does not matter; None when the key has changed."""
        if edit is None or (item is None and not isinstance(edit, Put)):
            return 0
        if isinstance(edit, Expire) and item is not None:
            edit = Put(item.value, item.flags, edit.expires_at)
        if isinstance(edit, Put) and words.seconds(edit.expires_at) != words.GONE:
            more = b" C%d" % item.version if item else MODES[Mode.ADD]
            meta = self._meta([words.storing(key, edit, more)], WRITE)[0]
            return meta.version if meta.code == b"HD" else None
        if item is None:
            return 0
        code = self._meta([words.deleting(key, item.version)], WRITE)[0].code
        return 0 if code == b"HD" else None

    def put_many(self, entries: Sequence[tuple[bytes, Put]]) -> None:
        """Each key for itself: when one fails, the others are stored."""
        self._meta([
            words.storing(key, put, b"") for key, put in dict(entries).items()
        ], IDEMPOTENT)  # fmt: skip

    def put_many_if_absent(self, entries: Sequence[tuple[bytes, Put]]) -> bool:
        key, put = entries[-1]
        return self.store(key, put.value, put.flags, put.expires_at, Mode.ADD) is Outcome.STORED

    def store(
        self,
        key: bytes,
        value: bytes,
        flags: int = 0,
        expires_at: float | None = None,
        mode: Mode = Mode.SET,
        version: int = 0,
    ) -> Outcome:
        if mode is Mode.CAS and not version:
            return Outcome.EXISTS if self.get_many([key])[0] else Outcome.NOT_FOUND
        more = b" C%d" % version if mode is Mode.CAS else MODES[mode]
        return OUTCOMES[self._meta([words.storing(key, Put(value, flags, expires_at), more)], WRITE)[0].code]

    def delete_many(self, keys: Sequence[bytes]) -> int:
        """Each key for itself."""
        found = self._meta([words.deleting(key) for key in dict.fromkeys(keys)], WRITE)
        return sum(1 for meta in found if meta.code == b"HD")

    def incr_unsigned(self, key: bytes, delta: int) -> int | None:
        meta = self._meta([words.counting(key, delta)], WRITE)[0]
        return int(meta.value) if meta.code == b"VA" else None

    def expire_many(self, keys: Sequence[bytes], expires_at: float | None) -> list[Item | None]:
        """Each key for itself."""
        return self._items([words.touching(key, expires_at) for key in keys], IDEMPOTENT)

    def persist(self, key: bytes) -> bool:
        item = self.expire_many([key], None)[0]
        return item is not None and item.expires_at is not None

    def clear(self) -> None:
        lane = self._lane()
        reply = ask(lane, b"flush_all\r\n", ADMIN)
        self._check(lane, reply)
        if reply != b"OK\r\n":
            raise lane.distrust(f"flush_all was answered {reply[:80]!r}")

    # ---- the server

    def _lane(self) -> Lane:
        return self.node.lane(MemcacheGreeting(), next(self._next) % self.connections)

    def _items(self, requests: Sequence[bytes], klass: int) -> list[Item | None]:
        return self._told(requests, klass, lambda meta: None if meta.code == b"EN" else meta.item)

    def _meta(self, requests: Sequence[bytes], klass: int) -> list[words.Meta]:
        return self._told(requests, klass, lambda meta: meta)

    def _told(self, requests: Sequence[bytes], klass: int, understand: Callable[[words.Meta], T]) -> list[T]:
        """What the answers mean; all are waited for, then the first error is raised."""
        lane = self._lane()
        replies = ask_all(lane, requests, klass)
        for reply in replies:
            if isinstance(reply, BackendError):
                raise reply
            self._check(lane, reply)
        try:
            return [understand(words.meta_in(reply)) for reply in replies if isinstance(reply, bytes)]
        except (ValueError, KeyError) as fault:
            raise lane.distrust(f"a meta command was answered with something else: {fault!r}") from None

    def _check(self, lane: Lane, reply: bytes) -> None:
        """Raises BackendError for an error, or ClientError for what is the client's fault."""
        if not reply.startswith(ERRORS):
            return
        if reply == DROPPED:
            raise lane.node.unread()
        if b"non-numeric" in reply:
            raise NotANumber
        kind = next((kind for words_, kind in KINDS.items() if words_ in reply), "protocol")
        raise lane.node.error(kind, f"it answered {reply[:-2].decode(errors='replace')}")
