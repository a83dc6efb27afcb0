"""What a kind of server must be able to say to stand above the level that knows: a cache. Words only, no connections.

A cache may lose anything. What it holds of a key that is written below is replaced by a mark, MARK, which says "ask
below" and ends by itself; what is filled in from below is only added where there is nothing. So a reader that began
before a write can't put back what it has read (hyper_proxy/tunnel/levels.py has the argument).

That the levels below have nothing can be kept, too: as NOTHING, a value like any other, which is added and marked as
copies are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.replies import ReplyParser
from hyper_proxy.conn_pool.routes.speech import Speech
from hyper_proxy.storage.keyvalue import Item

SIGN = b"\x00hyper_proxy: "  # how values begin that are none of a client's
MARK = SIGN + b"ask below\x00"
NOTHING = SIGN + b"nothing\x00"


@dataclass(frozen=True, slots=True)
class Marked:
    """In the place of an item: the key was written a moment ago."""


@dataclass(frozen=True, slots=True)
class Absent:
    """In the place of an item: the levels below had nothing a moment ago."""


MARKED = Marked()
ABSENT = Absent()
Answer = Item | Marked | Absent | None


def answer(value: bytes, flags: int) -> Answer:
    """What a value that a cache has means."""
    if value.startswith(SIGN):
        if value.startswith(MARK):  # one that belongs to a writer has his sign behind it (claims.py)
            return MARKED
        if value == NOTHING:
            return ABSENT
    return Item(value, flags, None, 0)


class Cache(ABC):
    """One kind of server as a cache. An item that comes from it has no known expiry and version 0."""

    kind: str
    keeps = True  # False: it is read-only, so it is neither filled nor marked nor emptied
    greeting: Greeting
    parser: type[ReplyParser]
    speech: Speech

    @abstractmethod
    def takes(self, key: bytes) -> bool:
        """Can it hold such a key at all? One that it can't is looked for below at once."""

    @abstractmethod
    def question(self, keys: Sequence[bytes]) -> bytes:
        """The request for all these keys."""

    @abstractmethod
    def answers(self, reply: bytes, keys: Sequence[bytes]) -> list[Answer]:
        """What it says of each key. Raises ReplyError when the reply is an error or no answer to this question."""

    @abstractmethod
    def fill(self, key: bytes, item: Item, seconds: float) -> bytes | None:
        """The request that adds the item where the key has nothing; None when it can't hold it as it is."""

    @abstractmethod
    def mark(self, key: bytes, seconds: float) -> bytes:
        """The request that puts MARK in the place of whatever is there, for so long, at most a second less."""

    @abstractmethod
    def is_marked(self, reply: bytes) -> bool:
        """Does this reply say that the mark stands?"""

    @abstractmethod
    def empty(self) -> bytes:
        """The request that removes everything."""
