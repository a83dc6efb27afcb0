"""One reply out of the replies of every shard, for the commands whose treatment is ALL.

    replies (bytes each, in shard order)  ->  REDUCERS[command.reduce](replies, context)  ->  reply bytes

An error in any part becomes the whole reply, the first one in shard order: half an answer that looks whole is worse
than none. `any_ok` is the exception, since of several servers only one runs the script that is to be killed. Each
function knows the one form that replies to its commands have; a reply of another form raises BadReply, which is the
server's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hyper_proxy.storage.redis_reply import BadReply, parse

from . import encode


class Chance(Protocol):
    """A random.Random, or the module."""

    def choice(self, seq: Sequence[bytes]) -> bytes:
        """Any one of them."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a reducer knows besides the replies: the client's protocol version and a source of chance."""

    resp: int
    random: Chance


Reducer = Callable[[list[bytes], Context], bytes]


def _first_error(replies: list[bytes]) -> bytes | None:
    return next((reply for reply in replies if reply.startswith(b"-")), None)


def _integer(item: object) -> int:
    if not isinstance(item, int):
        raise BadReply(f"{item!r} is not an integer")
    return item


def _list(reply: bytes) -> list[object]:
    items = parse(reply)
    if not isinstance(items, list):
        raise BadReply(f"{reply[:64]!r} is not an array")
    return items


def sum_integers(replies: list[bytes], context: Context) -> bytes:
    """DBSIZE, PUBLISH, PUBSUB NUMPAT: the sum."""
    return encode.integer(sum(_integer(parse(reply)) for reply in replies))


def minimum(replies: list[bytes], context: Context) -> bytes:
    """WAIT: as many replicas as every shard has."""
    return encode.integer(min(_integer(parse(reply)) for reply in replies))


def first(replies: list[bytes], context: Context) -> bytes:
    """SCRIPT LOAD, FUNCTION LOAD: all say the same."""
    return replies[0]


def all_ok(replies: list[bytes], context: Context) -> bytes:
    """FLUSHALL, SCRIPT FLUSH: OK when all say so."""
    for reply in replies:
        if reply != encode.OK:
            raise BadReply(f"{reply[:64]!r} is not OK")
    return encode.OK


def any_ok(replies: list[bytes], context: Context) -> bytes:
    """SCRIPT KILL, FUNCTION KILL: OK when one server had something to kill, else the first error."""
    return encode.OK if encode.OK in replies else replies[0]


def concat(replies: list[bytes], context: Context) -> bytes:
    """KEYS: the elements of all, in shard order, as they came; a key is on one shard only."""
    total = 0
    bodies = []
    for reply in replies:
        eol = reply.find(b"\r\n")
        if reply[:1] not in (b"*", b"~") or not reply[1:eol].isdigit():
            raise BadReply(f"{reply[:64]!r} is not an array")
        total += int(reply[1:eol])
        bodies.append(reply[eol + 2 :])
    return b"*%d\r\n%b" % (total, b"".join(bodies))


def union(replies: list[bytes], context: Context) -> bytes:
    """PUBSUB CHANNELS: each name once, in the order it was first seen."""
    return encode.value(list(dict.fromkeys(item for reply in replies for item in _list(reply))), context.resp)


def sum_by_name(replies: list[bytes], context: Context) -> bytes:
    """PUBSUB NUMSUB: each name with the sum of its numbers, by place, since a client may ask for a name twice."""
    lists = [_list(reply) for reply in replies]
    if len({len(items) for items in lists}) != 1 or len(lists[0]) % 2:
        raise BadReply("the shards answer about different channels")
    merged: list[object] = []
    for at in range(0, len(lists[0]), 2):
        merged += [lists[0][at], sum(_integer(items[at + 1]) for items in lists)]
    return encode.value(merged, context.resp)


def minimum_by_position(replies: list[bytes], context: Context) -> bytes:
    """SCRIPT EXISTS: a script exists when every shard has it, or EVALSHA would fail on some."""
    lists = [_list(reply) for reply in replies]
    if len({len(items) for items in lists}) != 1:
        raise BadReply("the shards answer about different scripts")
    return encode.value([min(map(_integer, items)) for items in zip(*lists, strict=True)], context.resp)


def random_one(replies: list[bytes], context: Context) -> bytes:
    """RANDOMKEY: any shard's key; null only when all are empty."""
    found = [reply for reply in replies if parse(reply) is not None]
    return context.random.choice(found) if found else encode.null(context.resp)


def running(replies: list[bytes], context: Context) -> bytes:
    """FUNCTION STATS: of the first server that runs a script now, else of the first."""
    for reply in replies:
        items = _list(reply)
        if len(items) < 2 or items[0] != b"running_script":
            raise BadReply(f"{reply[:64]!r} does not say what is running")
        if items[1] is not None:
            return reply
    return replies[0]


def _unless_error(reduce: Reducer) -> Reducer:
    def guarded(replies: list[bytes], context: Context) -> bytes:
        return _first_error(replies) or reduce(replies, context)

    guarded.__doc__ = reduce.__doc__
    return guarded


# By the name that the command table uses. by_position and the sums of SPLIT commands are made where requests are split.
REDUCERS: dict[str, Reducer] = {
    "all_ok": _unless_error(all_ok),
    "any_ok": any_ok,
    "concat": _unless_error(concat),
    "first": _unless_error(first),
    "minimum": _unless_error(minimum),
    "minimum_by_position": _unless_error(minimum_by_position),
    "random": _unless_error(random_one),
    "running": _unless_error(running),
    "sum": _unless_error(sum_integers),
    "sum_by_name": _unless_error(sum_by_name),
    "union": _unless_error(union),
}
