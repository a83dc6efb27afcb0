"""What routes must understand of their servers' words; each kind of storage says it in its own file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

EVERYTHING = b"\x00everything\x00"


class Speech(ABC):
    """The words of one kind of server, whole requests and replies as they travel.

    busy_s_per_byte: so long the server answers nobody else while it does what take_out or put_in says, for each byte
    that the key has; 0.0 where others do not have to wait.
    """

    busy_s_per_byte = 0.0

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
    def size(self, key: bytes) -> bytes:
        """The request that asks how many bytes a key has."""

    @abstractmethod
    def size_in(self, reply: bytes) -> int | None:
        """What that was answered: 0 for no such key, None where the server does not know the question."""

    @abstractmethod
    def take_out(self, key: bytes) -> Sequence[bytes]:
        """The requests that, all together, get everything that a server has of a key."""

    @abstractmethod
    def put_in(self, key: bytes, replies: Sequence[bytes], replace: bool = False) -> bytes | None:
        """The request that adds what take_out was answered to another server, where the key has nothing, or replaces
        what it has; None when there was nothing."""

    @abstractmethod
    def remove(self, key: bytes) -> bytes:
        """The request that removes a key."""

    @abstractmethod
    def removal(self, request: bytes) -> bytes | None:
        """For a request that removes keys: the one that does the same at another server; else None."""

    @abstractmethod
    def found_none(self, reply: bytes) -> bool:
        """Does the reply to a removal say that there was nothing?"""

    @abstractmethod
    def keys_written(self, request: bytes) -> list[bytes] | None:
        """The keys that a write may change; None where that can't be told. [EVERYTHING]: all that the server has."""

    @property
    @abstractmethod
    def question(self) -> bytes:
        """The request whose answer says which process the server is, where one that began anew may lack data that
        nobody would miss; else one that asks nothing but for an answer."""

    @abstractmethod
    def identity(self, reply: bytes) -> bytes:
        """Which process that is; b"" where it does not matter."""

    @abstractmethod
    def every_key(self, ask: Callable[[int, bytes], bytes]) -> Iterator[tuple[int, bytes]]:
        """All keys of a server with their databases, by `ask(database, request)`. Nothing of one that may lose keys."""
