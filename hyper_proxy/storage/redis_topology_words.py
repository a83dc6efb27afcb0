"""What redis servers and sentinels say of who they are and where the others are, made into values.

Sources: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/, /commands/cluster-slots, /info,
/sentinel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyper_proxy.conn_pool.replies import ReplyError

SLOTS = 16384

Address = tuple[str, int]
"""Host and port."""


@dataclass(frozen=True, slots=True)
class Range:
    """Slots `first` to `last` and who has them: the master and its replicas; host "" is that of who was asked."""

    first: int
    last: int
    master: Address
    replicas: tuple[Address, ...]


def parse(reply: bytes) -> Any:
    """Lists, bytes, int or None of a whole RESP2 reply. Raises ReplyError for an error, and for what is no reply."""
    try:
        value, end = _value(reply, 0)
    except (ValueError, IndexError, RecursionError) as fault:
        raise ReplyError(f"{reply[:80]!r} can't be read") from fault
    if end != len(reply):
        raise ReplyError(f"{reply[:80]!r} is more than one reply")
    return value


def _value(reply: bytes, at: int) -> tuple[Any, int]:
    end = reply.index(b"\r\n", at)
    kind, word = reply[at : at + 1], reply[at + 1 : end]
    at = end + 2
    if kind == b"-":
        raise ReplyError(f"it answered {word[:200].decode(errors='replace')}")
    if kind == b":":
        return int(word), at
    if kind == b"+":
        return word, at
    size = int(word)
    if size < 0:
        return None, at
    if kind == b"$":
        return reply[at : at + size], at + size + 2
    if kind != b"*":
        raise ReplyError(f"no value begins with {kind!r}")
    items = []
    for _ in range(size):
        item, at = _value(reply, at)
        items.append(item)
    return items, at


def read_slots(reply: bytes) -> list[Range]:
    """Of CLUSTER SLOTS. Raises ReplyError."""
    try:
        return [
            Range(_slot(first), _slot(last), _address(master), tuple(_address(one) for one in replicas))
            for first, last, master, *replicas in parse(reply)
        ]
    except (ValueError, TypeError, AttributeError, IndexError) as fault:
        raise ReplyError(f"CLUSTER SLOTS was answered {reply[:80]!r}") from fault


def _slot(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < SLOTS:
        raise ValueError(number)
    return number


def _address(node: Any) -> Address:
    """A host that the server does not know is that at which it was asked itself."""
    host = (node[0] or b"").decode()
    return ("" if host == "?" else host), int(node[1])


def read_info(reply: bytes) -> dict[str, str]:
    """Of INFO and CLUSTER INFO. Raises ReplyError."""
    text = parse(reply)
    if not isinstance(text, bytes):
        raise ReplyError(f"INFO was answered {reply[:80]!r}")
    lines = (line.partition(":") for line in text.decode(errors="replace").splitlines())
    return {key: value for key, colon, value in lines if colon}


def read_pairs(items: list[bytes]) -> dict[str, str]:
    """Of the flat lists that sentinels answer: name, value, name, value ..."""
    words = [item.decode(errors="replace") for item in items]
    return dict(zip(words[::2], words[1::2], strict=True))


def read_redirection(reply: bytes) -> tuple[int, Address]:
    """Slot and address of -MOVED and -ASK. Raises ReplyError."""
    try:
        _, slot, address = reply[:-2].decode().split(" ")
        host, _, port = address.rpartition(":")
        return int(slot), (host.strip("[]"), int(port))
    except ValueError as fault:
        raise ReplyError(f"{reply[:80]!r} says no address") from fault
