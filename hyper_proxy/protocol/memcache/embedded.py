"""A memcache front over a key-value storage of the proxy itself: requests become operations on keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyper_proxy.common import witness
from hyper_proxy.common.clock import now
from hyper_proxy.common.errors import BackendError
from hyper_proxy.protocol.memcache import translate, wording
from hyper_proxy.protocol.memcache.command import META_STORE
from hyper_proxy.protocol.memcache.framing import split_words
from hyper_proxy.storage.keyvalue import Partial

if TYPE_CHECKING:
    from hyper_proxy.protocol.memcache.session import MemcacheSession


def treat(session: MemcacheSession, buf: bytes, end: int) -> bool:
    """Answer the request at hand; False while the batch before it is not answered."""
    if session.batch.slots:
        return False
    framer = session.framer
    if framer.command.form == META_STORE and buf[end - 2 : end] != b"\r\n":
        session.answer(wording.BAD_CHUNK)
        return True
    words = [framer.command.name, *split_words(buf, framer.args, framer.text_end)]
    run(session, words, buf[framer.line_end : end - 2])
    return True


def run(session: MemcacheSession, words: list[bytes], value: bytes = b"") -> None:
    """Execute the words of a command."""
    since = now()
    witness.forget()
    try:
        reply = translate.execute(session.snapshot.storage, words, value)
    except BackendError as error:
        reply = session.error_reply(error)
        if isinstance(error, Partial) and session.instance.on_partial != "error":
            reply = translate.encode_partly(words, error) or reply
        if session.framer.noreply:
            return
    finally:
        session.batch.note_wait(witness.told(), 0.0, 0.0, now() - since)
    if reply:
        session.answer(reply)
