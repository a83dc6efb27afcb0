"""Commands that wait for other clients: BLPOP, XREAD BLOCK ... on a lane of their own, for as long as the client stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyper_proxy.protocol.redis import commands, wording

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.session import RedisSession


def wait(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bytes:
    """The server's answer, whenever it comes. When the client goes away first, the lane is closed: nothing is popped for it."""
    shards = {session.locate(argv[position]) for position in commands.keys_of(row, argv)}
    if len(shards) > 1:
        raise wording.ErrorReply(wording.CROSS_SHARD)
    # Words so malformed that no key can be found in them: any server words the error.
    shard = shards.pop() if shards else 0
    lane = session.storage.borrow(shard, session.db, session.resp, patient=True)
    session.client.on_hang_up = lane.abandon
    try:
        reply = session.batch.ask(lane, raw)
    finally:
        session.client.on_hang_up = None
    session.storage.give_back(lane)
    return reply
