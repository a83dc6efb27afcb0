"""A worker that stood still beyond a deadline looks once more before it calls a server late.

It is stopped while it waits for events: the kernel then tells it of none, but the time has passed.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.sockets import ESTABLISHED, SYN_SENT, sockets, unread
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{server}"]
  timeout = {{ connect_ms = {connect_ms}, read_ms = {read_ms} }}
"""
DEADLINE_MS = 600  # less than the second after which the kernel asks again for a connection


def passed() -> Callable[[], bool]:
    """Is the deadline over, and half of it, from now on?"""
    began = time.monotonic()
    return lambda: time.monotonic() - began > DEADLINE_MS * 1.5 / 1000


@contextmanager
def still(worker: int) -> Iterator[None]:
    """This process stands still."""
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def test_a_greeting_that_was_answered_in_time(tmp_path: Path) -> None:
    with ExitStack() as stack:
        server, port = stack.enter_context(redis_server()), free_port()
        text = CONFIG.format(port=port, server=server.port, connect_ms=5000, read_ms=DEADLINE_MS)
        (worker,) = stack.enter_context(Fleet(text, tmp_path)).worker_pids()
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        server.freeze()
        late = passed()
        client.sendall(b"SET a 1\r\n")
        wait_for(lambda: unread(server.port) > 0, "the greeting has come")
        with still(worker):
            server.thaw()
            wait_for(lambda: any(one.remote == server.port and one.unread for one in sockets()), "it is answered")
            wait_for(late, "the deadline is over")
        assert client.recv(100) == b"+OK\r\n"


def test_a_connection_that_was_accepted_in_time(tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port, at = free_port(), server.getsockname()
        text = CONFIG.format(port=port, server=at[1], connect_ms=DEADLINE_MS, read_ms=5000)
        (worker,) = stack.enter_context(Fleet(text, tmp_path)).worker_pids()
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        stack.enter_context(socket.create_connection(at))  # fills the queue: there is no room for another one
        client.sendall(b"SET a 1\r\n")
        late = passed()
        wait_for(lambda: any(one.remote == at[1] and one.state == SYN_SENT for one in sockets()), "it is tried")
        with still(worker):
            server.accept()[0].close()
            mine = [one.local for one in sockets() if one.remote == at[1] and one.state == SYN_SENT]
            wait_for(
                lambda: any(one.local in mine and one.state == ESTABLISHED for one in sockets()),
                "it is accepted",
            )
            wait_for(late, "the deadline is over")
        accepted = stack.enter_context(server.accept()[0])
        assert accepted.recv(100), "the greeting"
