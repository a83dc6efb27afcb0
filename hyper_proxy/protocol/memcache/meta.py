"""What the proxy itself must know of meta commands: base64 keys, and the flags of a request that is refused here.

The flag q asks for silence in the usual case. It is taken out on the way to the server, so that every request there has
one answer, and the answer is dropped here if memcached would not have sent it (`hides` of the command table).
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence

from hyper_proxy.protocol.memcache import wording

FLAGS = frozenset(b"bcfhklqstuvOPLNTRFICMDJ")
"""The flags of mg, ms, md and ma together; memcached checks them against this one list."""

MAX_FLAG = 126


def decode_key(key: bytes) -> bytes:
    """A base64 key, so that it is placed as the same key in plain text is.

    What is no base64 is placed as it stands: it is refused (echo.py).
    """
    try:
        return binascii.a2b_base64(key, strict_mode=True)
    except binascii.Error:
        return key


def flag_error(name: bytes, words: Sequence[bytes]) -> bytes:
    """The error for a request with two flags q: of memcached's two complaints the one whose cause comes first.

    words: what stands behind the key.
    """
    if name in (b"md", b"ma"):
        return wording.BAD_OR_DUPLICATE_FLAG
    seen: set[int] = set()
    for word in words[1:] if name == b"ms" else words:
        flag = word[0]
        if flag in seen or flag > MAX_FLAG:
            break
        if flag not in FLAGS:
            return wording.BAD_FLAG
        seen.add(flag)
    return wording.DUPLICATE_FLAG
