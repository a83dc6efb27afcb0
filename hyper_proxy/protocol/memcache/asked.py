"""What a memcache request asks for, told from its bytes once more, for those that are looked at more closely."""

from __future__ import annotations

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.look import Asked
from hyper_proxy.protocol.memcache import meta
from hyper_proxy.protocol.memcache.command import LOCAL, META_STORE, STORE, STORE_CAS
from hyper_proxy.protocol.memcache.commands import COMMANDS, UNKNOWN
from hyper_proxy.protocol.memcache.framing import Framer, split_words

STORES = frozenset({STORE, STORE_CAS, META_STORE})


def describe(own: Framer, buf: bytes, start: int, end: int, index: int) -> Asked | None:
    """The request number `index` of those in buf[start:end]; None when there is none. own: the session's framer.

    Only what is a command is named: any other word may be a piece of a value that was cut wrongly.
    """
    framer = Framer(own.max_key, 1 << 62, 1 << 62)
    while start < end:
        try:
            stop = framer.scan(buf, start)
        except ClientError:
            return None
        if not index:
            return _described(framer, buf, stop) if stop >= 0 else _begun(buf, start)
        if stop < 0:
            return None
        index -= 1
        start = stop
    return None


def _described(framer: Framer, buf: bytes, stop: int) -> Asked:
    row = framer.command
    name = row.name.decode()
    if framer.error is not None or row.form >= LOCAL:
        return Asked(name, [])
    if framer.several:
        return Asked(name, split_words(buf, framer.key_start, framer.text_end))
    key = buf[framer.key_start : framer.key_end]
    keys = [meta.decode_key(key) if framer.encoded else key]
    given = [stop - framer.line_end - 2] if row.form in STORES else None
    return Asked(name, keys, False, given)


def _begun(buf: bytes, start: int) -> Asked:
    word = buf[start:].lstrip(b" ").partition(b" ")[0]
    return Asked(COMMANDS.get(word, UNKNOWN).name.decode(), [])


def sizes(asked: Asked, reply: bytes) -> list[int] | None:
    """The bytes of each key's value in the reply; None when it has no values."""
    if reply.startswith(b"VA "):
        return [int(reply.split(None, 2)[1])]
    if not reply.startswith(b"VALUE "):
        return None
    found: dict[bytes, int] = {}
    at = 0
    while reply.startswith(b"VALUE ", at):
        line = reply.index(b"\n", at)
        _, key, _, size = reply[at : line - 1].split(b" ")[:4]
        found[key] = int(size)
        at = line + 1 + int(size) + 2
    return [found.get(key, 0) for key in asked.keys]
