"""A memcache front over Lushan: `get` alone, with the number of the database before each key on the way there only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hyper_proxy.common.errors import ClientError
from hyper_proxy.hashing.lushan import db_rule
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.fanout import item_end
from hyper_proxy.protocol.memcache.framing import split_words
from hyper_proxy.storage.lushan import key_there
from hyper_proxy.storage.memcache_replies import ERRORS
from hyper_proxy.tunnel.batch import Reducer

if TYPE_CHECKING:
    from hyper_proxy.protocol.memcache.session import MemcacheSession

NO_CAS = "Lushan has no cas; use get"
GET_ONLY = "Lushan serves get only"


def treat(session: MemcacheSession, buf: bytes, end: int) -> bool:
    """Send the keys of the request at hand to their shards, or refuse it."""
    framer = session.framer
    name = framer.command.name
    if name not in (b"get", b"bget"):
        if not framer.noreply:
            session.answer(wording.refused(name, NO_CAS if name == b"gets" else GET_ONLY))
        session.front.stats.error("client")
        return True
    try:
        reducer = LushanGet(session, split_words(buf, framer.key_start, framer.text_end))
    except ClientError as fault:
        session.answer(wording.client_error(fault))
        session.front.stats.error(fault.kind)
        return True
    session.batch.reduce_later(reducer)
    for shard, indexes in reducer.parts.items():
        request = b"get %b\r\n" % b" ".join([reducer.there[index] for index in indexes])
        session.batch.send(session.lanes[shard], request, framer.command.klass)
    return True


class LushanGet(Reducer):
    """keys: as the client says them; there: as the servers do; parts: shard to the indexes of its keys, in order."""

    def __init__(self, session: MemcacheSession, keys: Sequence[bytes]) -> None:
        db_of = db_rule(session.snapshot.storage.level.lushan_db)
        limits = session.snapshot.instance.limits
        if len(keys) > limits.max_arguments:
            raise ClientError("too many keys")
        if any(len(key) > limits.max_key_bytes for key in keys):
            raise ClientError("bad command line format")
        self.keys = keys
        self.there = [key_there(db_of(key), key) for key in keys]
        self.parts: dict[int, list[int]] = {}
        for index, key in enumerate(keys):
            self.parts.setdefault(session.placement.locate(key, 0, len(key)), []).append(index)
        self.count = len(self.parts)

    def reduce(self, replies: list[Any], session: Any) -> bytes:
        """The items under the client's keys, in its order; by `on_partial` a failed part makes an error, or misses."""
        items: list[bytes] = [b""] * len(self.keys)
        failures: list[bytes] = []
        lost = 0
        for (shard, indexes), reply in zip(self.parts.items(), replies, strict=True):
            failure = self._take(items, indexes, reply)
            if failure is None:
                continue
            if not isinstance(reply, bytes):
                failure = session.error_reply(reply)
            failures.append(failure or session.misfit(shard))
            lost += len(indexes)
            for index in indexes:
                items[index] = b""
        if failures and session.snapshot.instance.on_partial == "error":
            return wording.partly(failures[0], lost, len(self.keys))
        return b"".join(items) + wording.END

    def _take(self, items: list[bytes], indexes: Sequence[int], reply: Any) -> bytes | None:
        """Put the items of one reply to their indexes. None; or the answer instead, empty for a misfit."""
        if not isinstance(reply, bytes):
            return b""
        at = 0
        for index in indexes:
            there = self.there[index]
            end = item_end(reply, at, there, 0, len(there))
            if end > 0:
                rest = at + len(b"VALUE ") + len(there)
                items[index] = b"VALUE %b%b" % (self.keys[index], reply[rest:end])
                at = end
        tail = reply[at:]
        if tail == wording.END:
            return None
        return tail if tail.startswith(ERRORS) else b""
