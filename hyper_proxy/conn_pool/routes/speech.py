"""What routes must understand of their servers' words; each kind of storage says it in its own file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class Speech(ABC):
    """The words of one kind of server, whole requests and replies as they travel."""

    @abstractmethod
    def is_error(self, reply: bytes) -> bool:
        """Did the server refuse, instead of doing what it was asked?"""

    @abstractmethod
    def empty(self, every_db: bool) -> bytes:
        """The request that removes all keys: of the connection's database, or of every one; its answer says OK."""

    @abstractmethod
    def keys_missed(self, request: bytes, reply: bytes) -> list[bytes]:
        """The keys of a read that the reply says nothing of; [] when it lacks nothing, or that can't be told."""

    @abstractmethod
    def take_out(self, key: bytes) -> Sequence[bytes]:
        """The requests that, all together, get everything that a server has of a key."""

    @abstractmethod
    def put_in(self, key: bytes, replies: Sequence[bytes]) -> bytes | None:
        """The request that adds what take_out was answered to another server, where the key has nothing; None when
        there was nothing."""
