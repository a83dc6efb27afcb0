"""What the memcache front answers itself, or asks of all nodes: one function a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hyper_proxy.common.errors import BackendError
from hyper_proxy.protocol.memcache import embedded, stats, wording
from hyper_proxy.protocol.memcache.command import REFUSED
from hyper_proxy.protocol.memcache.numbers import read_signed32, read_unsigned32
from hyper_proxy.storage.keyvalue import KeyValue
from hyper_proxy.storage.memcache_replies import ERRORS
from hyper_proxy.tenant import policy

if TYPE_CHECKING:
    from hyper_proxy.protocol.memcache.session import MemcacheSession

Answer = Callable[["MemcacheSession", Sequence[bytes]], bool]


def treat(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """Answer the command at hand; `words` stand behind its name. False while the batch before it is not answered."""
    command = session.framer.command
    if command.form == REFUSED:
        session.answer(wording.refused(command.name, command.why))
        session.front.stats.error("client")
        return True
    return ANSWERS[command.name](session, words)


def _say(session: MemcacheSession, reply: bytes) -> bool:
    """Answer, if an answer is wanted."""
    if not session.framer.noreply:
        session.answer(reply)
    return True


def mn(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """The end of a row of quiet requests; answered in its turn, like everything."""
    session.answer(wording.MN)
    return True


def version(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    session.answer(b"VERSION %b\r\n" % stats.VERSION.encode())
    return True


def quit_(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """What was asked before is still answered."""
    session.closing = True
    return True


def verbosity(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """Accepted, and without meaning: how much the proxy logs is said in its configuration."""
    return _say(session, wording.BAD_FORMAT if read_unsigned32(words[0]) is None else wording.OK)


def show_stats(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """stats, stats items ...: see stats.py."""
    refusal = stats.refusal(words)
    if refusal is not None:
        session.answer(refusal)
        return True
    reducer = stats.reducer(session, words)
    if not reducer.count:
        session.answer(reducer.reduce([], session))
        return True
    session.batch.reduce_later(reducer)
    for lane in reducer.lanes:
        session.batch.send(lane, b" ".join([b"stats", *words]) + b"\r\n", session.framer.command.klass)
    return True


def flush_all(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """flush_all [delay] [noreply]"""
    if not policy.allows(session.instance, "FLUSH_ALL"):
        session.front.stats.error("denied")
        return _say(session, wording.NO_FLUSH)
    request = b"flush_all\r\n"
    if len(words) != (1 if session.framer.noreply else 0):
        delay = read_signed32(words[0])
        if delay is None:
            return _say(session, wording.BAD_EXPTIME)
        request = b"flush_all %d\r\n" % delay
    if session.treat is not None:
        return _flush_elsewhere(session, words)
    return _ask_all(session, request)


def cache_memlimit(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """cache_memlimit megabytes [noreply]: of each node."""
    if not policy.allows(session.instance, "CACHE_MEMLIMIT"):
        session.front.stats.error("denied")
        return _say(session, wording.NO_RESIZE)
    limit = read_unsigned32(words[0])
    if limit is None:
        return _say(session, wording.ERROR)
    if session.treat is not None:
        return _say(session, wording.refused(b"cache_memlimit", wording.ONE_LEVEL))
    return _ask_all(session, b"cache_memlimit %d\r\n" % limit)


def _ask_all(session: MemcacheSession, request: bytes) -> bool:
    """Send it to every node; OK when all say so."""
    lanes = session.lanes_of(session.snapshot.storage.nodes.every)
    if session.framer.noreply:
        for lane in lanes:
            session.send_unheard(lane, request)
        return True
    session.batch.reduce_later(AllOk(lanes))
    for lane in lanes:
        session.batch.send(lane, request, session.framer.command.klass)
    return True


def _flush_elsewhere(session: MemcacheSession, words: Sequence[bytes]) -> bool:
    """The storage is no memcached."""
    if not isinstance(session.snapshot.storage, KeyValue):
        return _say(session, wording.refused(b"flush_all", "Lushan is read only"))
    if session.batch.slots:
        return False
    embedded.run(session, [b"flush_all", *words])
    return True


def forget(session: MemcacheSession) -> None:
    """A value was refused for its size: the one that it should have replaced must not stay, as in memcached."""
    storage = session.snapshot.storage
    key = session.key()
    if isinstance(storage, KeyValue):
        try:
            storage.delete_many([key])
        except BackendError as fault:  # the client hears of the size already
            session.front.stats.error(fault.kind)
    elif storage.forwards:
        word = session.buf[session.framer.key_start : session.framer.key_end]
        request = b"delete %b\r\n" % key if word == key else b"md %b b\r\n" % word
        session.send_unheard(session.lanes[session.shard()], request)


REFUSALS = (*ERRORS, b"MEMLIMIT_")


class AllOk(stats.OfNodes):
    """OK when every node has said so; else the first failure."""

    def reduce(self, replies: list[Any], session: MemcacheSession) -> bytes:
        for lane, reply in zip(self.lanes, replies, strict=True):
            if not isinstance(reply, bytes):
                return session.error_reply(reply)
            if reply != wording.OK:
                return reply if reply.startswith(REFUSALS) else session.misfit_of(lane)
        return wording.OK


ANSWERS: dict[bytes, Answer] = {
    b"mn": mn,
    b"version": version,
    b"quit": quit_,
    b"verbosity": verbosity,
    b"stats": show_stats,
    b"flush_all": flush_all,
    b"cache_memlimit": cache_memlimit,
}
