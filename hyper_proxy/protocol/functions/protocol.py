"""What a protocol of six functions is. Everything else (connections, pipelines, limits, statistics, slow log, reload,
drain) is the session's (session.py).

    bytes ──unserialize──► Request ──split──► parts ──map──► results ──reduce──► reply ──serialize──► bytes
    an error ──refuse──► bytes
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.plugin_error import shown
from hyper_proxy.config.model import Instance
from hyper_proxy.stats.classes import CLASSES, READ
from hyper_proxy.storage.keyvalue import KeyValue

LONGEST_COMMAND = 64


def plain(data: bytes) -> bytes:
    """Of the class itself, which compiled code wants, and without a call of the other one's code."""
    return data if type(data) is bytes else memoryview(data).tobytes()


@dataclass(frozen=True, slots=True)
class Request:
    """One request as `unserialize` found it.

    command  its name, for slow log and explain: they show the first 64 characters
    keys     all of its keys: held against limits.max_key_bytes and max_arguments, counted as hot keys
    klass    READ, IDEMPOTENT, WRITE or ADMIN: how it is counted
    values   what it wants to store: held against limits.max_value_bytes
    content  whatever the other functions need to know
    close    the connection ends behind the answer
    """

    command: str
    keys: tuple[bytes, ...] = ()
    klass: int = READ
    values: tuple[bytes, ...] = ()
    content: Any = None
    close: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.command, str):
            raise TypeError(f"command of a Request is text, not {shown(self.command)}")
        if len(self.command) > LONGEST_COMMAND:
            object.__setattr__(self, "command", self.command[:LONGEST_COMMAND])
        for name in ("keys", "values"):
            found = getattr(self, name)
            if type(found) is not tuple or not _BYTES.issuperset(map(type, found)):
                object.__setattr__(self, name, _all_plain(name, found))
        if not isinstance(self.klass, int) or self.klass not in _KLASSES:
            raise TypeError(f"klass of a Request is READ, IDEMPOTENT, WRITE or ADMIN, not {shown(self.klass)}")


def _all_plain(name: str, found: Iterable[Any]) -> tuple[bytes, ...]:
    kept = tuple(found)
    if not all(isinstance(one, bytes) for one in kept):
        raise TypeError(f"{name} of a Request are bytes")
    return tuple(map(plain, kept))


_BYTES = {bytes}
_KLASSES = range(len(CLASSES))


@dataclass(frozen=True, slots=True)
class Partly:
    """What `unserialize` says of a request that is not all there, if None does not say it all.

    end    the bytes before it are taken and never come again: only for an object that has them in mind, which is the
           client's own (`opened`). With some taken, the rest is asked for at once; with none, when more has come
    reply  what the client reads now, behind the answers to what it asked before
    lacks  how many bytes must still come, where that can be told: for who has to choose when memory is short
    """

    end: int
    reply: bytes = b""
    lacks: int = 0


@dataclass(slots=True)
class Client:
    """Who is connected: the address, and the instance as the next request sees it: a reload exchanges it."""

    address: str
    instance: Instance


class Protocol(ABC):
    """One object serves all clients of all instances with this protocol, and must not keep anything about them; unless
    its `opened` makes one for each of them.

    The functions must return quickly, since the other clients of the worker wait meanwhile; `map` alone may wait, for
    the storage. What they raise: ClientError is the client's fault, and its text the answer. Any other error is a fault
    of the plug-in: the client is answered by `refuse`, it is counted as `plugin` and logged with file and line. Raised
    by `opened` or `unserialize`, either also ends the connection, for nobody knows where the next request begins.
    """

    @abstractmethod
    def unserialize(self, buffer: bytes, start: int) -> tuple[Request, int] | Partly | int | None:
        """The request that begins at buffer[start], and the index behind it.

        None when the buffer does not have all of it yet, or how many bytes it has in all, where that can be told: then
        it is asked again, with the same bytes and more. Or Partly. No request is asked for before the one ahead of it
        has been answered.
        """

    @abstractmethod
    def split(self, request: Request) -> Sequence[Any]:
        """The parts of the request, anything that `map` understands; those of one request are asked side by side."""

    @abstractmethod
    def map(self, storage: KeyValue, part: Any) -> Any:
        """Ask the storage for one part; what it raises goes to the client when all parts have ended."""

    @abstractmethod
    def reduce(self, request: Request, results: Sequence[Any]) -> Any:
        """The reply, of the results of all parts in their order."""

    @abstractmethod
    def serialize(self, reply: Any) -> bytes:
        """The reply as the client reads it; b"" when it reads none."""

    @abstractmethod
    def refuse(self, error: HyperProxyError) -> bytes:
        """An error as the client reads it: str(error) is for people, error.kind for programs."""

    def opened(self, client: Client) -> Protocol:
        """A client is connected: the object that serves it, until it is gone. By default the one that serves all."""
        return self

    def sizes(self, request: Request, reply: bytes) -> Sequence[int] | None:
        """The bytes of the value of each key of a request that reads, as its reply tells them; None if it does not.

        Asked for one request in a hundred.
        """
        return None

    def encode(self, words: Sequence[bytes]) -> bytes:
        """A request of words, as `hyper-proxy explain` is given them; by default one line."""
        return b" ".join(words) + b"\n"
