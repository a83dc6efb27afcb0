"""A scriptable TCP server: how it answers is one row of BEHAVIOURS, and can be changed while it runs."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Protocol, Self

SLOW_S = 0.1  # how long "slow" thinks about each reply
MOMENT_S = 0.01
LINGER_0 = struct.pack("ii", 1, 0)  # close() then sends a reset


class Closed(Exception):
    """The conversation is over."""


class Speech(Protocol):
    """A protocol: how requests are read, and what a server that works answers."""

    garbage: bytes
    surplus: bytes  # a whole reply that nobody has asked for
    greetings: frozenset[bytes]  # in upper case: verbs that a proxy says on a new connection

    def read(self, stream: BinaryIO) -> list[bytes]:
        """The words of the next request; none at the end of the stream."""
        ...

    def answer(self, request: list[bytes]) -> bytes:
        """The right reply; empty when none is wanted."""
        ...


@dataclass(slots=True)
class Conversation:
    """One connection; `stop` is set when the server ends, so that nothing waits longer than that."""

    sock: socket.socket
    speech: Speech
    stop: threading.Event

    def send(self, data: bytes) -> None:
        """Plainly."""
        self.sock.sendall(data)

    def reset(self) -> None:
        """End it with a reset instead of a good-bye."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
        raise Closed


Behaviour = Callable[[Conversation, bytes], None]


def good(talk: Conversation, reply: bytes) -> None:
    """Answers as it should."""
    talk.send(reply)


def slow(talk: Conversation, reply: bytes) -> None:
    """Answers late."""
    talk.stop.wait(SLOW_S)
    talk.send(reply)


def silent(talk: Conversation, reply: bytes) -> None:
    """Reads and never answers."""


def half(talk: Conversation, reply: bytes) -> None:
    """Sends half of the first reply, then nothing more."""
    talk.send(reply[: len(reply) // 2])
    talk.stop.wait()
    raise Closed


def reset(talk: Conversation, reply: bytes) -> None:
    """Sends half of a reply, then resets the connection."""
    talk.send(reply[: len(reply) // 2])
    talk.reset()


def garbage(talk: Conversation, reply: bytes) -> None:
    """Sends what is no reply in this protocol."""
    talk.send(talk.speech.garbage)


def too_much(talk: Conversation, reply: bytes) -> None:
    """Sends one reply more than it was asked for."""
    talk.send(reply + talk.speech.surplus)


def afterthought(talk: Conversation, reply: bytes) -> None:
    """Answers right, and a moment later once more, unasked."""
    talk.send(reply)
    talk.stop.wait(MOMENT_S)
    talk.send(talk.speech.surplus)


def double(talk: Conversation, reply: bytes) -> None:
    """Sends a reply that nobody has asked for in front of the right one."""
    talk.send(talk.speech.surplus + reply)


def deaf(talk: Conversation, reply: bytes) -> None:
    """Stops reading, and never answers."""
    talk.stop.wait()
    raise Closed


def endless(talk: Conversation, reply: bytes) -> None:
    """Begins a line that has no end."""
    talk.send(reply[:1])
    while True:
        talk.send(b"1" * 65536)


def bytewise(talk: Conversation, reply: bytes) -> None:
    """Answers right, a byte in each packet."""
    for byte in reply:
        talk.send(bytes([byte]))


def closes(talk: Conversation, reply: bytes) -> None:
    """Answers right, then closes the connection, which is idle by then."""
    talk.send(reply)
    raise Closed


def hangs_up(talk: Conversation, reply: bytes) -> None:
    """Closes the connection instead of answering."""
    raise Closed


ALL = (
    good, slow, silent, half, reset, garbage, too_much, afterthought, double, deaf, endless, bytewise, closes, hangs_up,
)  # fmt: skip
BEHAVIOURS: dict[str, Behaviour] = {behaviour.__name__: behaviour for behaviour in ALL}


class FakeServer:
    """Listens on 127.0.0.1:port, a thread for each connection.

    `requests`, `accepted` and `closed` tell what it has seen.

    A polite one misbehaves only after the greeting. `banner` is what it says on a new connection before it was asked.
    """

    def __init__(
        self, speech: Speech, behaviour: str = "good", port: int = 0, polite: bool = False, banner: bytes = b""
    ) -> None:
        self.speech = speech
        self.polite = polite
        self.banner = banner
        self.behaviour = BEHAVIOURS[behaviour]
        self.requests: list[list[bytes]] = []
        self.accepted = 0
        self.closed = 0
        self._stop = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        """As it stands in a `servers` list."""
        return f"127.0.0.1:{self.port}"

    def behave(self, behaviour: str) -> None:
        """From the next request on, on connections that are open too."""
        self.behaviour = BEHAVIOURS[behaviour]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.add(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        talk = Conversation(sock, self.speech, self._stop)
        with suppress(OSError, Closed), sock, sock.makefile("rb") as stream:
            sock.sendall(self.banner)
            while request := self.speech.read(stream):
                self.requests.append(request)
                if reply := self.speech.answer(request):
                    greeted = self.polite and request[0].upper() in self.speech.greetings
                    (good if greeted else self.behaviour)(talk, reply)
        self._open.discard(sock)
        self.closed += 1

    def drop(self) -> None:
        """Close all connections; new ones are accepted."""
        for sock in list(self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Close everything; the port refuses from now on."""
        self._stop.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()
        for thread in list(self._threads):
            thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
