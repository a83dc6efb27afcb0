"""Base64 keys (flag b) on their way to a memcached, so that no key cuts an answer in two.

Memcached 1.6.18 forgets that a key came in base64 when the flag N has made its item, and prints the key of such an
item as it is: in the answer to mg with the flag k, and in that to me. Whoever puts a line feed into a key so chooses
the next line, which would be taken for the answer to whoever asked that server next, another client even. So no such
item is made: N is refused for these keys. Others may have made one: no server is asked to print such a key. mg goes
there without k, and the key is put into its answer here; me is refused.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any

from hyper_proxy.protocol.memcache import wording
from hyper_proxy.tunnel.batch import Reducer

if TYPE_CHECKING:
    from hyper_proxy.protocol.memcache.framing import Framer
    from hyper_proxy.protocol.memcache.session import MemcacheSession

OF_AN_ITEM = frozenset(b"cfhlOst")  # the flags of mg, but for k, that stand in the answer when there is an item
MAKERS = (b"mg", b"ma")  # of an item, by the flag N
NO_ITEM = "the key has a line feed, which the server would print as it is if the flag N made the item; store it with ms"
NO_DEBUG = wording.refused(b"me", "the key has a line feed, which the server may print as it is")
ANSWERED = {b"VA": (2, OF_AN_ITEM), b"HD": (1, OF_AN_ITEM), b"EN": (1, frozenset(b"O"))}
"""By an answer's first word: at which of its words the flags begin, and which of those asked for stand there."""


def passable(session: MemcacheSession, buf: bytes, raw: bytes) -> bytes:
    """What to send of the request at hand, which has the flag b, in place of `raw`; empty when it is refused."""
    framer = session.framer
    error = refusal(framer, buf)
    if error:
        session.answer(error)
        session.front.stats.error("client")
        return b""
    raw, echo = unechoed(framer, buf, raw)
    if echo is not None:
        session.batch.reduce_later(echo)
    return raw


def refusal(framer: Framer, buf: bytes) -> bytes:
    """The error for the request with flag b that the framer has found in buf; empty when there is none."""
    name = framer.command.name
    key = _decoded(framer, buf)
    words = framer.rewrite(buf).split(b" ")
    if key is None:  # memcached makes a key of some of that all the same: not the one that is placed
        if name == b"me":
            return wording.BAD_FORMAT
        return wording.BAD_KEY if len(_flags(words, b"b")) == 1 else b""
    if b"\n" not in key:
        return b""
    if name == b"me":
        return NO_DEBUG
    return wording.refused(name, NO_ITEM) if name in MAKERS and _flags(words, b"N") else b""


def unechoed(framer: Framer, buf: bytes, raw: bytes) -> tuple[bytes, Echo | None]:
    """What to send in place of `raw`, and what puts the key into the answer."""
    words = framer.rewrite(buf).split(b" ")
    echoes = _flags(words, b"k")
    if framer.command.name != b"mg" or len(echoes) != 1 or b"\n" not in (_decoded(framer, buf) or b""):
        return raw, None
    echo = Echo(words[1], words[2 : echoes[0]])
    del words[echoes[0]]
    return b" ".join(words) + b"\r\n", echo


def _decoded(framer: Framer, buf: bytes) -> bytes | None:
    """The key; None if it is no base64."""
    try:
        return binascii.a2b_base64(buf[framer.key_start : framer.key_end], strict_mode=True)
    except binascii.Error:
        return None


def _flags(words: list[bytes], flag: bytes) -> list[int]:
    """Where a flag stands behind the key; a server refuses whatever has it twice."""
    return [at for at, word in enumerate(words) if at > 1 and word.startswith(flag)]


class Echo(Reducer):
    """Puts a key into the answer to mg. text: as the client has written it; before: the flags that stand before k."""

    def __init__(self, text: bytes, before: list[bytes]) -> None:
        self.count = 1
        self.echo = b"k%b b" % text
        self.before = before

    def reduce(self, replies: list[Any], session: Any) -> bytes:
        """The answer with the key; one that has no flags as it is."""
        (reply,) = replies
        if not isinstance(reply, bytes):
            error: bytes = session.error_reply(reply)
            return error
        line, end, value = reply.partition(b"\r\n")
        words = line.split(b" ")
        if words[0] not in ANSWERED:
            return reply
        first, answered = ANSWERED[words[0]]
        words.insert(first + sum(flag[0] in answered for flag in self.before), self.echo)
        return b" ".join(words) + end + value
