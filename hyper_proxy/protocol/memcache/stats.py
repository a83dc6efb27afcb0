"""The command `stats`: the proxy's own numbers, and what the nodes say, added up.

A client that watches hits, items and evictions sees those of all nodes together. Per node, and with latencies, they are
at the sidecar's /stats.
"""

from __future__ import annotations

import os
import resource
import struct
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hyper_proxy import __version__
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.numbers import read_unsigned32
from hyper_proxy.storage.memcache_replies import ERRORS
from hyper_proxy.tunnel.batch import Reducer

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.protocol.memcache.session import MemcacheSession

VERSION = f"1.6.18-hyper_proxy-{__version__}"
"""Clients read the number to know what the server can: it is that of the memcached whose protocol this is."""

_born = time.time()

KINDS = (b"", b"settings", b"items", b"slabs", b"sizes", b"cachedump")
"""What may stand behind `stats`."""

SLAB_CLASSES = 64  # memcached's limit

_ELSEWHERE = "is not served: these are a single server's; connect to that server"
REFUSALS = {
    b"reset": wording.client_error(f"stats reset {_ELSEWHERE}"),
    b"conns": wording.client_error(f"stats conns {_ELSEWHERE}"),
    b"detail": wording.client_error(f"stats detail {_ELSEWHERE}"),
}

# Numbers of which the largest is what one wants to know; behind the last colon of items:1:age and the like.
LARGEST = frozenset(
    ("age", "age_hot", "age_warm", "evicted_time", "chunk_size", "chunks_per_page", "hash_power_level", "active_slabs")
)


def refusal(words: Sequence[bytes]) -> bytes | None:
    """Why `stats` with these words is not served, if it is not."""
    kind = words[0] if words else b""
    if kind not in KINDS:
        return REFUSALS.get(kind, wording.ERROR)
    if kind != b"cachedump":
        return None
    if len(words) < 3:
        return wording.BAD_LINE
    slab_class, limit = read_unsigned32(words[1]), read_unsigned32(words[2])
    if slab_class is None or limit is None:
        return wording.BAD_FORMAT
    return None if slab_class < SLAB_CLASSES else wording.BAD_SLAB


def reducer(session: MemcacheSession, words: Sequence[bytes]) -> OfNodes:
    """What merges the nodes' answers to `stats` with these words; its count is 0 where the storage is no memcached."""
    lanes = session.lanes_of(session.snapshot.storage.nodes.homes) if session.treat is None else []
    if words and words[0] == b"cachedump":
        return CacheDump(lanes, read_unsigned32(words[2]) or 0)
    return Stats(lanes, words[0] if words else b"")


class OfNodes(Reducer):
    """One reply out of those to one request on each of these lanes."""

    def __init__(self, lanes: list[Lane]) -> None:
        self.count = len(lanes)
        self.lanes = lanes


class CacheDump(OfNodes):
    """The ITEM lines of all nodes, at most `limit` of them; 0 is no limit."""

    def __init__(self, lanes: list[Lane], limit: int) -> None:
        super().__init__(lanes)
        self.limit = limit

    def reduce(self, replies: list[Any], session: MemcacheSession) -> bytes:
        lines: list[bytes] = []
        for lane, reply in zip(self.lanes, replies, strict=True):
            if not isinstance(reply, bytes):
                return session.error_reply(reply)
            if not reply.endswith(wording.END):
                return reply if reply.startswith(ERRORS) else session.misfit_of(lane)
            lines += reply[: -len(wording.END)].splitlines(keepends=True)
        return b"".join(lines[: self.limit or None]) + wording.END


class Stats(OfNodes):
    """Adds the nodes' lines to the proxy's; a node that fails is counted in proxy_nodes_failed."""

    def __init__(self, lanes: list[Lane], kind: bytes) -> None:
        super().__init__(lanes)
        self.kind = kind

    def reduce(self, replies: list[Any], session: MemcacheSession) -> bytes:
        nodes = []
        for lane, reply in zip(self.lanes, replies, strict=True):
            if not isinstance(reply, bytes):
                session.front.stats.error(reply.kind)
            elif not reply.endswith(wording.END):
                session.misfit_of(lane)
            else:
                nodes.append(read_lines(reply))
        lines = own_lines(session) if not self.kind else {}
        for name, value in merge(nodes, add=self.kind != b"settings").items():
            lines.setdefault(name, value)
        if not self.kind:
            lines["proxy_nodes"] = str(len(replies))
            lines["proxy_nodes_failed"] = str(len(replies) - len(nodes))
        return b"".join([f"STAT {name} {value}\r\n".encode() for name, value in lines.items()]) + wording.END


def own_lines(session: MemcacheSession) -> dict[str, str]:
    """The lines that are about the process the client is connected to."""
    now = time.time()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    front = session.front
    return {
        "pid": str(os.getpid()),
        "uptime": str(int(now - _born)),
        "time": str(int(now)),
        "version": VERSION,
        "pointer_size": str(struct.calcsize("P") * 8),
        "rusage_user": f"{usage.ru_utime:.6f}",
        "rusage_system": f"{usage.ru_stime:.6f}",
        "curr_connections": str(len(front.clients)),
        "total_connections": str(front.stats.accepted),
        "rejected_connections": str(front.stats.refused),
    }


def read_lines(reply: bytes) -> dict[str, str]:
    """The STAT lines of a node by name."""
    lines = {}
    for line in reply.decode("utf-8", "replace").split("\r\n"):
        word, _, rest = line.partition(" ")
        if word == "STAT":
            name, _, value = rest.partition(" ")
            lines[name] = value
    return lines


def merge(nodes: list[dict[str, str]], *, add: bool) -> dict[str, str]:
    """The lines of all nodes as one: counts added (if `add`) or the largest taken, the rest the first node's."""
    merged: dict[str, str] = {}
    for lines in nodes:
        for name, value in lines.items():
            known = merged.get(name)
            if known is None:
                merged[name] = value
            elif known.isdigit() and value.isdigit() and (add or name == "maxbytes"):
                both = (int(known), int(value))
                merged[name] = str(max(both) if name.rpartition(":")[2] in LARGEST else sum(both))
    return merged
