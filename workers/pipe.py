"""The worker's end of the pipe to the master: one greenlet reads, one writes, and nobody else ever waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from gevent import socket
from gevent.event import Event

from hyper_proxy.common.frames import FrameReader, Message, encode_frame

# A master that is so far behind has more urgent things to do than to read counters.
MAX_QUEUED_BYTES = 8 * 1024 * 1024
_READ_BYTES = 64 * 1024
_MAX_FDS = 16


class MasterPipe:
    """Messages to and from the master. Descriptors that come with messages wait in order for take_fd."""

    def __init__(self, fd: int) -> None:
        self._sock = socket.socket(fileno=fd)
        self._reader = FrameReader()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._wake = Event()
        self._empty = Event()
        self._empty.set()
        self._fds: deque[int] = deque()

    def send(self, message: Message) -> bool:
        """Queues a message without waiting; False when the queue is full, and the message is not sent then."""
        frame = encode_frame(message)
        if self._queued_bytes + len(frame) > MAX_QUEUED_BYTES:
            return False
        self._queue.append(frame)
        self._queued_bytes += len(frame)
        self._empty.clear()
        self._wake.set()
        return True

    def take_fd(self) -> int:
        """The next descriptor that the master has sent; the caller owns it."""
        return self._fds.popleft()

    def read_all(self, on_message: Callable[[Message], None]) -> None:
        """Hands on messages until the master closes its end, or is killed. Raises FrameError."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self._sock, _READ_BYTES, _MAX_FDS)
            except ConnectionError:
                return
            self._fds.extend(fds)
            if not data:
                return
            for message in self._reader.feed(data):
                on_message(message)

    def write_all(self) -> None:
        """Sends what is queued, until the master is gone: who reads finds that, too."""
        with suppress(ConnectionError):
            while True:
                while self._queue:
                    frame = self._queue.popleft()
                    self._sock.sendall(frame)
                    self._queued_bytes -= len(frame)
                self._empty.set()
                self._wake.wait()
                self._wake.clear()

    def flush(self, seconds: float) -> bool:
        """Waits until everything queued is sent, at most so long; False when it is not."""
        return bool(self._empty.wait(seconds))
