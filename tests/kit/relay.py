"""An address that stands for a server, as a balancer does: it accepts always, and hands on when the server is there."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from tests.kit.ports import accepts
from tests.kit.servers import Running
from tests.kit.wait import wait_for


class Relay:
    """In front of `server`, like which it is started and killed. Nothing is handed on until `open` is set."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.open = Event()
        self.open.set()
        self.accepted = 0
        self._lock = Lock()
        self._socks: list[socket.socket] = [self.listener]
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed at the end
            while True:
                sock = self.listener.accept()[0]
                self._keep(sock)
                self.accepted += 1
                Thread(target=self._connect, args=(sock,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self.open.wait()
        wait_for(lambda: accepts(self.server.port), "the server is there again")
        with suppress(OSError):
            server = self._keep(socket.create_connection(("127.0.0.1", self.server.port)))
            Thread(target=_copy, args=(server, client), daemon=True).start()
            _copy(client, server)

    def _keep(self, sock: socket.socket) -> socket.socket:
        with self._lock:
            self._socks.append(sock)
        return sock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.open.set()
        for sock in self._socks:
            with suppress(OSError):  # its other end may be gone
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Until one of them has ended; then the other one ends as well."""
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
