"""A blocking client of protocols whose answers are lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from tests.protocol.raw import Raw


class Lines:
    """A connection to a port of the loopback interface."""

    def __init__(self, port: int) -> None:
        self.raw = Raw(port)

    def send(self, data: bytes) -> None:
        """Say this."""
        self.raw.sock.sendall(data)

    def lines(self, count: int) -> list[bytes]:
        """So many lines of answers, without their ends; b"" where the connection has ended."""
        return [self.raw.file.readline().removesuffix(b"\n") for _ in range(count)]

    def ask(self, data: bytes, lines: int = 1) -> list[bytes]:
        """Say this, and read so many lines."""
        self.send(data)
        return self.lines(lines)

    def read_to_end(self) -> bytes:
        """All that comes until the connection ends."""
        return self.raw.file.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.raw.close()


@contextmanager
def replacing_the_worker(port: int) -> Iterator[None]:
    """The body has another worker take the place of the only one, which takes clients until it has heard of that: at
    the end it has let go those whom it had, so it takes none any more."""
    with Lines(port) as client:
        yield
        assert client.read_to_end() == b""
