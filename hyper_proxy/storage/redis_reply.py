"""Replies of redis servers as Python data, for what the proxy itself has asked, or has to understand.

Format: https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

from typing import Any

from hyper_proxy.conn_pool.replies import ReplyError


class BadReply(ReplyError):
    """A server's reply has a form that is none, or that its command never has."""


def parse(reply: bytes) -> Any:
    """A whole RESP2 or RESP3 reply: null is None, a status or a bulk string is bytes, an array or a set is a list, a
    map is the flat list of its names and values. Raises BadReply, for an error as well, wherever it stands."""
    try:
        value, end = _value(reply, 0)
    except (ValueError, IndexError, RecursionError) as fault:
        raise BadReply(f"{reply[:80]!r} can't be read") from fault
    if end != len(reply):
        raise BadReply(f"{reply[:80]!r} is more than one reply")
    return value


def _value(reply: bytes, at: int) -> tuple[Any, int]:
    """What begins at `at`, and the index behind it."""
    eol = reply.index(b"\r\n", at)
    kind, word, at = reply[at : at + 1], reply[at + 1 : eol], eol + 2
    if kind == b"-":
        raise BadReply(f"it answered {word[:200].decode(errors='replace')}")
    if kind == b":":
        return int(word), at
    if kind == b"+":
        return word, at
    if kind == b"_" or (word == b"-1" and kind in (b"$", b"*")):
        return None, at
    if kind not in (b"$", b"*", b"~", b"%"):
        raise ValueError(f"no value begins with {kind!r}")
    size = int(word)
    if size < 0:
        raise ValueError("a negative length")
    if kind == b"$":
        if reply[at + size : at + size + 2] != b"\r\n":
            raise ValueError("a bulk string of another length")
        return reply[at : at + size], at + size + 2
    items = []
    for _ in range(2 * size if kind == b"%" else size):
        item, at = _value(reply, at)
        items.append(item)
    return items, at
