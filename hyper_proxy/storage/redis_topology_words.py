"""What redis servers and sentinels say of who they are and where the others are, made into values.

Sources: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/, /commands/cluster-slots, /info,
/sentinel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.redis_reply import parse

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
