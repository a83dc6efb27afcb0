"""SCAN over several shards: the shard is in the cursor.

A server's cursor is an unsigned 64-bit number that means something to that server only; 0 starts and ends. The client's
cursor is

    server cursor * shards + shard

so a client may stop, and go on through another worker, and nothing is kept here. When a shard ends (its server says 0)
the next shard's start follows; only the end of the last shard is 0 for the client. Shard 0's start is 0 too, which is
how a client begins. With one shard the cursors are the server's own.

Small data spread over several servers should still come in one reply, as it would from one server: while less than
COUNT keys are found, a shard's end leads straight on to the next shard (`run`).

A server's cursor is below the size of its table, so the product fits 64 bits as long as keys * shards do. Where it does
not, the client gets an error and never a wrong cursor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import encode as reply_of
from . import wording

CURSOR_LIMIT = 1 << 64  # clients and servers keep cursors in unsigned 64-bit numbers
CURSOR_DIGITS = 20  # of the greatest such number
DEFAULT_COUNT = 10  # redis' own, when the client does not say COUNT


class BadCursor(ValueError):
    """A cursor that is no unsigned 64-bit decimal number, or a server's that is too great to carry the shard."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scan goes on: which shard, and that server's own cursor."""

    shard: int
    cursor: int


@dataclass(frozen=True, slots=True)
class Page:
    """One server's reply to SCAN: its next cursor, how many keys, and the keys encoded as they came."""

    cursor: int
    count: int
    body: bytes


def decode(text: bytes, shards: int) -> Place:
    """The place that a client's cursor means; raises BadCursor."""
    if not text.isdigit() or len(text) > CURSOR_DIGITS or int(text) >= CURSOR_LIMIT:
        raise BadCursor("no unsigned 64-bit number")
    cursor, shard = divmod(int(text), shards)
    return Place(shard, cursor)


def encode(place: Place | None, shards: int) -> bytes:
    """The client's cursor for a place; None is the end. Raises BadCursor when the number would not fit."""
    if place is None:
        return b"0"
    cursor = place.cursor * shards + place.shard
    if cursor >= CURSOR_LIMIT:
        raise BadCursor(f"the cursor of shard {place.shard} leaves no room for the number of the shard")
    return b"%d" % cursor


def following(place: Place, server_cursor: int, shards: int) -> Place | None:
    """Where to go on after the server of `place` answered `server_cursor`; None when every shard has been walked."""
    if server_cursor:
        return Place(place.shard, server_cursor)
    return Place(place.shard + 1, 0) if place.shard + 1 < shards else None


def parse_page(reply: bytes) -> Page:
    """A server's reply, an array of the cursor (a bulk string) and an array of keys; raises ValueError for another."""
    if not reply.startswith(b"*2\r\n$"):
        raise ValueError(f"no reply to SCAN: {reply[:64]!r}")
    start = reply.index(b"\r\n", 5) + 2
    end = reply.index(b"\r\n", start)
    body = reply.index(b"\r\n", end + 2)
    if reply[end + 2 : end + 3] != b"*":
        raise ValueError(f"no keys in {reply[:64]!r}")
    return Page(int(reply[start:end]), int(reply[end + 3 : body]), reply[body + 2 :])


def wanted(argv: list[bytes]) -> int:
    """The number after COUNT. One that makes no sense counts as the default here: the server will word the error."""
    for at in range(2, len(argv) - 1, 2):
        if argv[at].lower() == b"count":
            return wording.number(argv[at + 1]) or DEFAULT_COUNT
    return DEFAULT_COUNT


def run(argv: list[bytes], shards: int, call: Callable[[int, list[bytes]], bytes]) -> bytes:
    """The client's reply to SCAN; `call(shard, words)` asks one server and returns its reply.

    At most one call per shard. What `call` raises passes through; a reply that is none to SCAN raises ValueError. A
    client's bad cursor, a server's error and an overflow become error replies.
    """
    try:
        place = decode(argv[1], shards)
    except BadCursor:
        return reply_of.error(wording.BAD_CURSOR)
    pages: list[Page] = []
    enough = wanted(argv)
    while True:
        reply = call(place.shard, [argv[0], b"%d" % place.cursor, *argv[2:]])
        if reply.startswith(b"-"):
            return reply
        page = parse_page(reply)
        pages.append(page)
        following_place = following(place, page.cursor, shards)
        if following_place is None or page.cursor or sum(page.count for page in pages) >= enough:
            break
        place = following_place
    try:
        cursor = encode(following_place, shards)
    except BadCursor as why:
        return reply_of.error(f"ERR {why}")
    count = sum(page.count for page in pages)
    return b"*2\r\n%b*%d\r\n%b" % (reply_of.bulk(cursor), count, b"".join(page.body for page in pages))
