"""memcached's meta commands as a key space needs them (docs: protocol.txt of memcached 1.6): words only."""

from __future__ import annotations

import base64
import math
import time
from dataclasses import dataclass

from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.storage.memcache import MAX_KEY_BYTES

BLANK = 32  # a key that is sent as it is has no byte up to this one
DEL = 127
LONGEST_RELATIVE_S = 30 * 86_400  # a longer time is taken for a moment in seconds since 1970
LAST_MOMENT = 2**31 - 1  # that fits into memcached's numbers: in January 2038
CLOCK_S = 1  # memcached's clock may be so late: without it an item that is changed again and again would never end
ROUND_S = 0.001  # so much of a second is no further second
GONE = -1  # the time of an item that ends at once


def is_plain(key: bytes) -> bool:
    """Can the key be sent as it is?"""
    return 0 < len(key) <= MAX_KEY_BYTES and min(key) > BLANK and DEL not in key


def name(key: bytes) -> tuple[bytes, bytes]:
    """The key as it is sent, and the flag that says how: as it is, or in base64. Raises ClientError if it can't be."""
    if is_plain(key):
        return key, b""
    sent = base64.b64encode(key)
    if not key or len(sent) > MAX_KEY_BYTES:
        raise ClientError(
            f"memcached can't hold this key: it is empty, or longer than {MAX_KEY_BYTES} bytes "
            f"({MAX_KEY_BYTES // 4 * 3} with blanks or control characters)"
        )
    return sent, b" b"


def seconds(expires_at: float | None) -> int:
    """A time of expiry in memcached's numbers: whole seconds, rounded up. Raises ClientError beyond 2038."""
    if expires_at is None:
        return 0
    left = math.ceil(expires_at - time.time() - ROUND_S)
    if left <= 0:
        return GONE
    if left <= LONGEST_RELATIVE_S:
        return left
    if expires_at > LAST_MOMENT:
        raise ClientError("memcached can't keep a time of expiry after January 2038")
    return math.floor(expires_at) - CLOCK_S


def reading(key: bytes, more: bytes = b"") -> bytes:
    """The request for an item; `more` are further flags."""
    sent, how = name(key)
    return b"mg %b%b v f t c%b\r\n" % (sent, how, more)


def touching(key: bytes, expires_at: float | None) -> bytes:
    """The same, giving it another time of expiry; the answer has the one before."""
    return reading(key, b" T%d" % seconds(expires_at))


def storing(key: bytes, put: Put, more: bytes) -> bytes:
    """The request that stores; `more` says under which condition. Raises ClientError when it can't be held."""
    sent, how = name(key)
    line = b"ms %b %d%b F%d T%d c%b\r\n" % (sent, len(put.value), how, put.flags, seconds(put.expires_at), more)
    return line + put.value + b"\r\n"


def deleting(key: bytes, version: int = 0) -> bytes:
    """The request that removes, with a version: if it is that one."""
    sent, how = name(key)
    return b"md %b%b%b\r\n" % (sent, how, b" C%d" % version if version else b"")


def counting(key: bytes, delta: int) -> bytes:
    """The request that adds to a number."""
    sent, how = name(key)
    return b"ma %b%b M%b D%d v\r\n" % (sent, how, b"I" if delta >= 0 else b"D", abs(delta))


@dataclass(frozen=True, slots=True)
class Meta:
    """An answer: its code, the value if it has one, and what stands behind the letters of its flags."""

    code: bytes
    value: bytes
    flags: dict[bytes, bytes]

    @property
    def version(self) -> int:
        """0 when it has none."""
        return int(self.flags.get(b"c", b"0"))

    @property
    def item(self) -> Item:
        """What mg has found. Raises KeyError and ValueError when something is missing."""
        left = int(self.flags[b"t"])
        return Item(self.value, int(self.flags[b"f"]), None if left < 0 else time.time() + left, self.version)


def meta_in(reply: bytes) -> Meta:
    """The parser has found the reply whole."""
    end = reply.index(b"\r\n")
    words = reply[:end].split(b" ")
    if words[0] != b"VA":
        return Meta(words[0], b"", {word[:1]: word[1:] for word in words[1:]})
    return Meta(b"VA", reply[end + 2 : -2], {word[:1]: word[1:] for word in words[2:]})
