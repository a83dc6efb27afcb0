"""gevent's WSGI server, with limits: whoever is slow, idle or one too many is hung up on, and nobody else waits for it.

A connection has HEAD_S to send a request line and its headers, also between two requests, and REQUEST_S for the rest;
each read and each whole answer may take IO_S. MAX_CONNECTIONS are open at once; when one more comes, the one that has
been waiting for a request the longest is closed, or else the one that keeps the sidecar waiting in the middle of one,
so that neither ever keeps an operator out. Nor do those who send many requests at once: after each answer it is the
others' turn, and while so many are open a connection ends with its answer.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any

import gevent
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

HEAD_S = 10.0
IO_S = 30.0
# A reload is the longest; see RELOAD_TIMEOUT_S of actions.py.
REQUEST_S = 90.0
MAX_CONNECTIONS = 128


class _Lines:
    """A stream that remembers its last line: a head that was cut off would pass for a whole one."""

    def __init__(self, stream: Any, handler: Handler) -> None:
        self._stream = stream
        self._handler = handler
        self.last = b""

    def readline(self, limit: int = -1) -> bytes:
        """The next line; empty at the end."""
        with self._handler.waiting():
            self.last = self._stream.readline(limit)
        return self.last

    def read(self, size: int = -1) -> bytes:
        """So many bytes, fewer at the end."""
        with self._handler.waiting():
            data: bytes = self._stream.read(size)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Handler(WSGIHandler):
    """One connection."""

    rfile: Any
    served = 0

    def handle(self) -> None:
        """Serves its requests until it ends."""
        self.socket.settimeout(IO_S)
        self.rfile = _Lines(self.rfile, self)
        self._timer = gevent.get_hub().loop.timer(HEAD_S)
        idle: dict[Handler, None] = self.server.idle
        try:
            with suppress(OSError):  # whoever has been hung up on, or is gone, can't be told what was wrong
                super().handle()
        finally:
            self._timer.close()
            idle.pop(self, None)

    def read_requestline(self) -> Any:
        """Waits for the next request; from here its head must be there in time."""
        self.server.idle[self] = None
        self._limit(HEAD_S)
        return super().read_requestline()

    def read_request(self, raw_requestline: str) -> Any:
        """Reads the head. Of what is wrong with it gevent shows a traceback, unless it is a ValueError."""
        try:
            whole = super().read_request(raw_requestline)
        except (HTTPException, OSError) as error:
            raise ValueError(str(error)) from error
        if not self.rfile.last:
            raise ValueError("the head ends without its empty line")
        return whole

    def handle_one_response(self) -> None:
        """The head is there: the rest of the request and its answer have their own time. Then it is others' turn."""
        self.server.idle.pop(self, None)
        self._limit(REQUEST_S)
        if self.server.is_crowded:
            self.close_connection = True
        super().handle_one_response()
        self.served += 1
        gevent.sleep(0)  # what a client sends ahead is here already: reading it would make nobody wait

    def finalize_headers(self) -> None:
        """gevent leaves out what HTTP/1.1 says when a connection ends."""
        if self.close_connection and self.request_version == "HTTP/1.1":
            self.response_headers.append((b"Connection", b"close"))
        super().finalize_headers()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Meanwhile it is the client that is waited for."""
        self.server.slow[self] = None
        if self.server.pool.full():
            self.server.make_room(self)
        try:
            yield
        finally:
            self.server.slow.pop(self, None)

    def _sendall(self, data: bytes) -> None:
        with self.waiting():
            super()._sendall(data)

    def hang_up(self) -> None:
        """Ends the connection from outside: whoever reads from it, reads its end."""
        with suppress(OSError):  # It may be gone already.
            self.socket.shutdown(socket.SHUT_RDWR)

    def log_error(self, msg: str, *args: Any) -> None:
        """Nonsense from a client is answered with 400 and is no news."""

    def _limit(self, seconds: float) -> None:
        self._timer.close()
        self._timer = gevent.get_hub().loop.timer(seconds)
        self._timer.start(self.hang_up)


class Server(WSGIServer):
    """Listens on a socket that is bound already."""

    handler_class = Handler

    def __init__(self, listener: Any, application: Any) -> None:
        # No access log: health probes would fill it. What goes wrong in a view is logged by Flask.
        super().__init__(listener, application, log=None, spawn=Pool(MAX_CONNECTIONS))
        self.idle: dict[Handler, None] = {}  # between two requests or in a head, the longest first
        self.slow: dict[Handler, None] = {}  # in the middle of a body or an answer, too

    def leave(self) -> None:
        """Takes nobody any more, and lets those go who ask nothing; what they have sent already is still answered."""
        self.stop_accepting()
        for handler in list(self.idle):
            if handler.served:  # Who has just come has something to ask, which may be on its way.
                with suppress(OSError):  # It may be gone already.
                    handler.socket.shutdown(socket.SHUT_RD)

    @property
    def is_crowded(self) -> bool:
        """May no more connections come than one?"""
        crowded: bool = self.pool.free_count() <= 1
        return crowded

    def do_handle(self, *args: Any) -> None:
        """Takes a new connection; makes room for it first."""
        if self.is_crowded:
            self.make_room()
        super().do_handle(*args)

    def make_room(self, but: Handler | None = None) -> None:
        """Hangs up on the one that has been waited for the longest, if there is any."""
        for handler in (*self.idle, *self.slow):
            if handler is not but:
                handler.hang_up()
                return
