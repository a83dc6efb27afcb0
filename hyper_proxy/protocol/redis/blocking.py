"""Commands that wait for other clients, BLPOP, XREAD BLOCK ...: on a lane of their own, while the client stays."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from gevent import get_hub

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.protocol.redis import commands, wording

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.session import RedisSession

MOST_MOVES = 3  # from server to server before it begins to wait
LOOK_S = 1.0  # a client that has sent more requests meanwhile does not announce its end: it is looked for
WAITED_S = 0.01  # for the lane: keys are about to move; a client that has gone meanwhile must not pop anything


def wait(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bytes:
    """The server's answer, whenever it comes. If the client goes away first, the lane is closed: nothing is popped."""
    shards = {session.locate(argv[position]) for position in commands.keys_of(row, argv)}
    if len(shards) > 1:
        raise wording.ErrorReply(wording.CROSS_SHARD)
    # Words so malformed that no key can be found in them: any server words the error.
    shard = shards.pop() if shards else 0
    storage = session.storage
    asked_at = monotonic()
    lane = storage.borrow(shard, session.db, session.resp, patient=True)
    client = session.client
    tries = MOST_MOVES
    client.on_hang_up = lane.abandon
    watch = get_hub().loop.timer(LOOK_S, LOOK_S)
    watch.start(client.look_for_hang_up)
    try:
        if monotonic() - asked_at > WAITED_S and client.look_for_hang_up():
            raise lane.node.lost("closed", "its client is gone", False)
        reply = session.batch.ask(lane, raw, row.klass)
        while (node := storage.moved(lane, reply)) is not None and tries:
            tries -= 1
            elsewhere = storage.borrow_of(node, session.db, session.resp, patient=True)
            storage.give_back(lane)
            lane = elsewhere
            client.on_hang_up = lane.abandon
            reply = session.batch.ask(lane, raw, row.klass)
    except HyperProxyError:
        lane.abandon()  # its request may not have been sent at all, and then nobody else would end it
        raise
    finally:
        client.on_hang_up = None
        watch.close()
    storage.give_back(lane)
    return reply
