"""The master's end of the pipe to one child: never blocks, never grows without bound.

Descriptors travel with a message (SCM_RIGHTS) and arrive not later than its last byte.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from hyper_proxy.common import log
from hyper_proxy.common.frames import FrameError, FrameReader, Message, encode_frame
from supervisor.loop import READ, WRITE, Loop

# What may wait for a child that does not read: some configurations of the largest size. A child that is that far
# behind hangs.
MAX_QUEUED_BYTES = 32 * 1024 * 1024
_READ_BYTES = 256 * 1024


class Pipe:
    """Messages to and from one child. `on_end` is called once, when the other end is closed or talks nonsense."""

    def __init__(
        self, loop: Loop, sock: socket.socket, on_message: Callable[[Message], None], on_end: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._on_message = on_message
        self._on_end = on_end
        self._reader = FrameReader()
        self._queue: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._queued_bytes = 0
        self.open = True
        self._ending = False
        sock.setblocking(False)
        loop.add(sock, self._on_event)

    def send(self, message: Message, fds: Sequence[int] = ()) -> bool:
        """Queues a message; the child gets copies of the descriptors, the caller may close its own at once.

        False when the pipe is closed, its end was said, its queue is full, or the message is larger than one may be: it
        is not sent then.
        """
        try:
            frame = encode_frame(message)
        except FrameError as error:
            log.error("pipe.not_sent", error=error)
            return False
        if not self.open or self._ending or self._queued_bytes + len(frame) > MAX_QUEUED_BYTES:
            return False
        self._queue.append((memoryview(frame), tuple(os.dup(fd) for fd in fds)))
        self._queued_bytes += len(frame)
        self._flush()
        return True

    def close(self) -> None:
        """Closes this end; on_end is not called."""
        if self.open:
            self.open = False
            self._loop.remove(self._sock)
            self._sock.close()
            self._forget()

    def say_end(self) -> None:
        """The child reads the end after everything that was sent, and what it still says is heard.

        A close would make the child lose what it has not read yet, if it has just written something.
        """
        if self.open:
            self._ending = True
            self._flush()

    def finish(self, last: Message | None = None) -> None:
        """Takes what a child that has exited still said, then closes this end; `last` is for a child that has not."""
        while self.open and self._read():
            pass
        if last is not None:
            self.send(last)
        self.close()

    def close_in_child(self) -> None:
        """Closes the descriptor that a fresh child inherited, without touching the parent's selector."""
        self._sock.close()
        self._forget()

    def _on_event(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & READ and self.open:
            self._read()

    def _flush(self) -> None:
        try:
            while self._queue:
                data, fds = self._queue[0]
                sent = socket.send_fds(self._sock, [data], fds) if fds else self._sock.send(data)
                self._queued_bytes -= sent
                for fd in fds:
                    os.close(fd)
                if sent == len(data):
                    self._queue.popleft()
                else:
                    self._queue[0] = (data[sent:], ())
        except BlockingIOError:
            self._loop.watch(self._sock, READ | WRITE)
        except OSError:
            self._forget()  # The other end is gone; reading sees the end after what the child still said.
            self._loop.watch(self._sock, READ)
        else:
            self._loop.watch(self._sock, READ)
            if self._ending:
                with suppress(OSError):
                    self._sock.shutdown(socket.SHUT_WR)

    def _forget(self) -> None:
        for _, fds in self._queue:
            for fd in fds:
                os.close(fd)
        self._queue.clear()
        self._queued_bytes = 0

    def _read(self) -> bool:
        """Reads once and hands on what is complete; False when there was nothing to read."""
        try:
            data = self._sock.recv(_READ_BYTES)
            messages = self._reader.feed(data)
        except BlockingIOError:
            return False
        except ConnectionResetError:  # it died before it had read all: whoever reaps it says which and why
            data, messages = b"", []
        except (OSError, FrameError) as error:
            log.error("pipe.broken", error=error)
            data, messages = b"", []
        for message in messages:
            if self.open:
                self._on_message(message)
        if not data and self.open:
            self.close()
            self._on_end()
        return bool(data)
