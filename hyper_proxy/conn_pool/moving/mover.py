"""What must be known of the servers' words to make them hand keys over; the storage says it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hyper_proxy.config.model import Server
    from hyper_proxy.conn_pool.greeting import Greeting


class Outcome(Enum):
    """What a server has said that was asked to hand keys over."""

    DONE = "it had some of them, and has none any more"
    NONE = "it had none of them"
    OCCUPIED = "the other one has something under such a name"
    UNREACHABLE = "it could not connect to the other one"
    BROKEN = "its talk with the other one broke off: that one is not well, or one of the keys is too much for it"
    FAILED = "one of them has refused"


class Mover(Protocol):
    """The words of one kind of server, whole requests and replies as they travel."""

    def keys_of(self, request: bytes) -> list[bytes]:
        """The keys of a client's request. Raises ClientError for one that can't be served while keys move."""
        ...

    def hand_over(
        self, to: Server, greeting: Greeting, keys: Sequence[bytes], replace: bool, failures: int = 0
    ) -> bytes:
        """The request to hand all of the keys that the server has to `to`, in one step.

        replace: they take the place of what is there under their names. failures: so often it was in vain before, so it
        may take longer.
        """
        ...

    def look(self, keys: Sequence[bytes]) -> bytes:
        """The request that asks whether the server has any of the keys, and does not change anything."""
        ...

    def has_none(self, reply: bytes) -> bool:
        """Of the answer to it: for sure it has none."""
        ...

    def outcome(self, reply: bytes) -> Outcome:
        """Of the answer to `hand_over`."""
        ...
