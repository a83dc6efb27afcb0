"""Every way to treat a request that is not simply forwarded: one function a treatment.

A function puts the answer, or the slots for it, into the session's batch and returns True; or it returns False when it
must not begin before the requests ahead of it are answered (it will be called again, with nothing ahead).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from hyper_proxy.common import witness
from hyper_proxy.common.clock import now
from hyper_proxy.common.errors import BackendError, ClientError, PolicyDenied
from hyper_proxy.protocol.redis import (
    blocking,
    command,
    commands,
    conversation,
    encode,
    reducers,
    scan,
    translate,
    wording,
)
from hyper_proxy.protocol.redis.framing import join_words
from hyper_proxy.protocol.redis.local import LOCAL
from hyper_proxy.protocol.redis.partly import elements
from hyper_proxy.protocol.redis.reach import check_named, in_server_db
from hyper_proxy.protocol.redis.subscriber import Subscriber
from hyper_proxy.storage.keyvalue import Partial
from hyper_proxy.storage.redis_reply import BadReply
from hyper_proxy.tenant import policy
from hyper_proxy.tunnel.batch import Reducer

if TYPE_CHECKING:
    from hyper_proxy.protocol.redis.command import Command
    from hyper_proxy.protocol.redis.session import RedisSession
    from hyper_proxy.protocol.redis.transaction import Transaction

Treatment = Callable[["RedisSession", "Command", bytes, list[bytes]], bool]

OF_HTTP = frozenset({b"post", b"host:"})
WAIT_SHARE = 0.5  # of a lane's read deadline
BEFORE_LOGIN = frozenset({b"auth", b"hello", b"quit", b"reset"})


def treat(session: RedisSession, raw: bytes, argv: list[bytes]) -> bool:
    """Answer one request, whatever it is."""
    if session.replies != conversation.ON:
        return _unheard(session, raw, argv)
    return _treat(session, raw, argv)


def _treat(session: RedisSession, raw: bytes, argv: list[bytes]) -> bool:
    if argv[0].lower() in OF_HTTP:
        # A web page can make a browser send a request here, and put commands into its body: as redis does, hang up.
        session.closing = True
        session.front.stats.error("client")
        return False
    before, klass = session.counted, command.ADMIN
    try:
        row = commands.resolve(argv)
        klass = row.klass
        taken = _serve(session, row, raw, argv)
    except wording.ErrorReply as fault:
        transaction = session.transaction
        if transaction is not None and transaction.begun and argv[0].lower() == b"exec":
            return _end(session, transaction, fault)
        taken = _say(session, fault.kind, fault.reply, not isinstance(fault, wording.Misplaced))
    except (ClientError, PolicyDenied) as fault:
        taken = _say(session, fault.kind, encode.error(f"ERR {fault}"))
    except BackendError as fault:
        if session.transaction is not None:
            session.transaction.spoil()
        session.batch.add(session.error_reply(fault))
        taken = True
    if taken and session.counted == before:
        session.tally(klass)  # it was refused before it was
    return taken


def _serve(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    if not session.authenticated and row.name not in BEFORE_LOGIN:
        raise wording.ErrorReply(wording.NO_AUTH)
    if row.dangerous:
        policy.check_allowed(session.instance, wording.permission(row))
    if any(len(argv[position]) > session.max_key for position in commands.keys_of(row, argv)):
        raise wording.ErrorReply(wording.long_key(session.max_key))
    if session.subscriber is not None and not session.subscriber.permits(row):
        raise wording.ErrorReply(wording.only_subscribing(row))
    if session.transaction is not None and session.transaction.takes(row):
        return session.transaction.queue(row, raw, argv)
    return TREATMENTS[row.treatment](session, row, raw, argv)


def _end(session: RedisSession, transaction: Transaction, fault: wording.ErrorReply) -> bool:
    """An EXEC that is wrong itself ends its transaction all the same, as in redis."""
    if session.batch.slots:
        return False
    transaction.abandon()
    session.tally(command.ADMIN)
    return _say(session, fault.kind, encode.error(wording.ABORTED + fault.reply[:-2].partition(b" ")[2]))


def _say(session: RedisSession, kind: str, reply: bytes, spoils: bool = True) -> bool:
    """An error that the proxy found itself; inside a transaction it spoils the transaction, as in redis."""
    session.front.stats.error(kind)
    if spoils and session.transaction is not None:
        session.transaction.spoil()
    session.batch.add(reply)
    return True


def _unheard(session: RedisSession, raw: bytes, argv: list[bytes]) -> bool:
    """CLIENT REPLY OFF or SKIP: the request is done, its answer is dropped; that of who switches replies on is not."""
    if session.batch.slots:
        return False
    if session.replies == conversation.SKIP:
        session.replies = conversation.SKIPPING
    taken = _treat(session, raw, argv)
    if session.replies == conversation.ON:
        return taken
    session.batch.wait()
    session.batch.collect(session)
    if session.replies == conversation.SKIPPING:
        session.replies = conversation.ON
        session.refresh()
    return not session.closing


def same_shard(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """Any number of keys: forwarded when they are all on one shard."""
    if not session.storage.forwards:
        return translated(session, row, raw, argv)
    session.tally(row.klass)
    shard = shard_of(session, row, argv)
    session.batch.send(session.lanes[shard], in_server_db(session.instance, row, raw, argv), row.klass)
    return True


def shard_of(session: RedisSession, row: Command, argv: list[bytes]) -> int:
    """The one shard of a request's keys, 0 when it has none. Raises ErrorReply when there are several."""
    shards = {session.locate(argv[position]) for position in commands.keys_of(row, argv)}
    if len(shards) > 1:
        raise wording.ErrorReply(wording.CROSS_SHARD)
    check_named(row, argv, session.placement.shards)
    return shards.pop() if shards else 0


def split(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """A splittable command that comes here is one of a storage that is not redis, or came as a line."""
    if not session.storage.forwards:
        return translated(session, row, raw, argv)
    return session.split_request(row, raw)


class EveryNode(Reducer):
    """One reply out of the replies of every node."""

    def __init__(self, reduce: str, nodes: int) -> None:
        self.count = nodes
        self.merge = reducers.REDUCERS[reduce]

    def reduce(self, replies: list[bytes | BackendError], session: RedisSession) -> bytes:
        """The merged reply; a node's failure is the failure of the whole."""
        answers: list[bytes] = []
        for reply in replies:
            if isinstance(reply, BackendError):
                return session.error_reply(reply)
            answers.append(reply)
        try:
            return self.merge(answers, reducers.Context(session.resp, random))
        except (BadReply, OverflowError, TypeError, RecursionError) as fault:
            return session.error_reply(BackendError(session.instance.name, "(one of all)", "protocol", str(fault)))


def every_node(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """Send it to all nodes and make one reply of theirs."""
    if not session.storage.forwards:
        return translated(session, row, raw, argv)
    session.tally(row.klass)
    if row.name == b"spublish" and session.storage.follows:  # a channel has a slot, as a key has
        session.batch.send(session.lanes[session.locate(argv[1])], raw, row.klass)
        return True
    if row.name == b"wait":
        raw = _shortened(session, argv)
    elif row.name == b"flushall" and session.storage.level.db:
        raise wording.ErrorReply(wording.OTHERS_TOO)
    lanes = session.lanes_of(session.storage.receivers(row.name, row.klass == command.READ))
    session.batch.reduce_later(EveryNode(row.reduce, len(lanes)))
    for lane in lanes:
        session.batch.send(lane, raw, row.klass)
    return True


def _shortened(session: RedisSession, argv: list[bytes]) -> bytes:
    """WAIT is about what its own connection wrote, so it goes where writes go, and may not hold that up for long."""
    most = max(1, round(session.lanes[0].node.read_s * WAIT_SHARE * 1000))
    asked = wording.number(argv[2])
    if asked is None:
        return join_words(argv)  # the servers word the error
    return join_words([argv[0], argv[1], b"%d" % (min(asked, most) or most)])


def scan_nodes(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """SCAN: one node after the other, the cursor says which."""
    if session.batch.slots:
        return False
    if not session.storage.forwards:
        return translated(session, row, raw, argv)

    lanes = session.lanes_of(session.storage.nodes.homes)
    asked = lanes[0]

    def call(home: int, words: list[bytes]) -> bytes:
        nonlocal asked
        asked = lanes[home]
        return session.batch.ask(asked, join_words(words), row.klass)

    try:
        reply = scan.run(argv, len(lanes), call)
    except ValueError:
        reply = session.misfit_of(asked)
    session.tally(row.klass)
    session.batch.add(reply)
    return True


def local(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """Answered from what the session knows."""
    session.tally(row.klass)
    answer = session.subscriber.answer(row, argv) if session.subscriber is not None else None
    session.batch.add(answer or LOCAL[row.name](session, argv))
    return True


def change_session(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """SELECT, MULTI, HELLO ...: what was asked before must be answered under the old state."""
    if session.batch.slots:
        return False
    reply = conversation.CHANGES[row.name](session, argv)
    session.tally(row.klass)
    if reply:
        session.batch.add(reply)
    return not session.closing


def block(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """A command that may wait for other clients, on a connection of its own."""
    if row.blocks is not None and not row.blocks(argv):
        return same_shard(session, row, raw, argv)
    if session.batch.slots:
        return False
    if not session.storage.forwards:
        return translated(session, row, raw, argv)
    session.tally(row.klass)
    session.batch.add(blocking.wait(session, row, raw, argv))
    return True


def subscribe(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """Listen to channels, on a connection of its own."""
    if session.batch.slots:
        return False
    if not session.storage.forwards:
        return translated(session, row, raw, argv)
    if session.subscriber is None:
        if row.name.endswith(b"unsubscribe"):
            session.batch.add(conversation.nothing_to_leave(session, argv))
            return True
        session.subscriber = Subscriber(session)
        session.refresh()
    session.tally(row.klass)
    session.subscriber.forward(row, raw, argv)
    return True


def refused(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """Not served: says why."""
    raise wording.ErrorReply(wording.refused(row))


def translated(session: RedisSession, row: Command, raw: bytes, argv: list[bytes]) -> bool:
    """The storage is no redis: the request becomes operations on keys and values."""
    if session.batch.slots:
        return False
    session.tally(row.klass)
    since = now()
    witness.forget()
    try:
        reply = translate.execute(session.storage, row, argv, session)
    except Partial as partial:
        reply = _partly(session, row, argv[1:], partial)
    finally:
        session.batch.note_wait(witness.told(), 0.0, 0.0, now() - since)
    session.batch.add(reply)
    return True


def _partly(session: RedisSession, row: Command, keys: list[bytes], partial: Partial) -> bytes:
    """Some servers failed: MGET follows the instance's policy, everything else is an error."""
    if row.name != b"mget" or session.instance.on_partial == "error":
        return session.error_reply(partial)
    return elements(keys, partial, session)


TREATMENTS: dict[int, Treatment] = {
    command.SINGLE: same_shard,
    command.SAME_SHARD: same_shard,
    command.SPLIT: split,
    command.ANY: same_shard,
    command.ALL: every_node,
    command.SCAN: scan_nodes,
    command.LOCAL: local,
    command.SESSION: change_session,
    command.BLOCK: block,
    command.SUBSCRIBE: subscribe,
    command.REFUSED: refused,
}
