"""Feeding parsers as sessions and connections do: pieces of bytes in, a plain list of what was found out.

The lists of two runs are equal when the parser found the same, whatever form it has and however the bytes were cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from hyper_proxy.common.errors import ClientError
from hyper_proxy.conn_pool.replies import ReplyError

MAX_ARGUMENTS, MAX_BULK, MAX_LINE = 1 << 20, 1 << 29, 1 << 16

Event = tuple[Any, ...]


class Requests:
    """What a redis session does with a client's bytes, up to the first error."""

    def __init__(
        self,
        framing: ModuleType,
        max_arguments: int = MAX_ARGUMENTS,
        max_bulk: int = MAX_BULK,
        max_line: int = MAX_LINE,
    ) -> None:
        self.framing = framing
        self.framer = framing.Framer(max_arguments, max_bulk, max_line)
        self.rest = b""
        self.need = 0
        self.events: list[Event] = []
        self.scans = 0
        self.broken = False

    def feed(self, data: bytes) -> None:
        """Bytes arrive."""
        self.rest += data
        if self.broken or len(self.rest) < self.need:
            return
        if not self._is_whole():
            return
        start, self.need = 0, 0
        try:
            while start < len(self.rest):
                self.scans += 1
                end = self.framer.scan(self.rest, start)
                if end < 0:
                    self.need = self.framer.need
                    break
                self.events.append(self._event(start, end))
                start = end
        except ClientError as fault:
            self.events.append(("error", str(fault)))
            self.broken = True
        self.rest = self.rest[start:]

    def _is_whole(self) -> bool:
        """A look at a buffer that grows, before it becomes bytes: as RedisSession.is_whole."""
        self.scans += 1
        try:
            if self.framer.scan(bytearray(self.rest), 0) >= 0:
                return True
        except ClientError:
            return True
        self.need = self.framer.need
        return False

    def _event(self, start: int, end: int) -> Event:
        framer, buf = self.framer, self.rest
        assert start < end <= len(buf)
        if framer.argc == 0:
            return ("nothing", buf[start:end])
        if framer.inline:
            return ("line", *self.framing.split_line(buf[start : end - 1]))
        words = self.framing.words(buf, framer.args, end)
        assert len(words) == framer.argc
        assert buf[framer.name_start : framer.name_end] == words[0]
        assert buf[framer.key_start : framer.key_end] == (words[1] if len(words) > 1 else b"")
        return ("request", *words)


def requests(framing: ModuleType, pieces: Iterable[bytes], **limits: int) -> list[Event]:
    """The events of a client's bytes; what is not whole stands last."""
    stream = Requests(framing, **limits)
    for piece in pieces:
        stream.feed(piece)
    return stream.events if stream.broken else [*stream.events, ("rest", stream.rest)]


def replies(parser: Any, pieces: Iterable[bytes]) -> list[Event]:
    """The events of a server's bytes."""
    events: list[Event] = []
    done = fed = 0
    for piece in pieces:
        fed += len(piece)
        try:
            found = parser.feed(piece)
        except ReplyError as fault:
            return [*events, ("error", str(fault))]
        events += [("reply", reply) for reply in found]
        done += sum(map(len, found))
        assert parser.is_clean == (done == fed)
    return [*events, ("rest", fed - done)]


def memcache_requests(
    framing: ModuleType, pieces: Iterable[bytes], max_key: int, max_value: int, max_line: int
) -> list[Event]:
    """The events of a memcache client's bytes, up to the first that makes the connection useless."""
    framer = framing.Framer(max_key, max_value, max_line)
    events: list[Event] = []
    rest, need, skip = b"", 0, 0
    for piece in pieces:
        rest += piece
        if skip:
            skipped = min(skip, len(rest))
            rest, skip = rest[skipped:], skip - skipped
        if skip or len(rest) < need:
            continue
        start, need = 0, 0
        try:
            while start < len(rest):
                end = framer.scan(rest, start)
                if end < 0:
                    need = framer.need
                    break
                events.append(_memcache_event(framer, rest, start, end))
                start = end + framer.swallow
                if start > len(rest):
                    start, skip = len(rest), start - len(rest)
        except ClientError as fault:
            return [*events, ("error", str(fault))]
        rest = rest[start:]
    return [*events, ("rest", rest, skip)]


def _memcache_event(framer: Any, buf: bytes, start: int, end: int) -> Event:
    assert start < end <= len(buf)
    assert start <= framer.args <= framer.text_end < framer.line_end <= end
    sent = None if framer.error is not None else framer.request(buf, start, end)
    found = (framer.error, framer.noreply, framer.several, framer.swallow, framer.quiet, sent)
    return ("request", framer.command.name, *found)
