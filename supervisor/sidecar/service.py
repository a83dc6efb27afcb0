"""Serves the application on the socket that the master bound, and ends when the master does."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import gevent
import setproctitle
from gevent.pool import Pool
from gevent.pywsgi import WSGIServer

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from supervisor import logs
from supervisor.sidecar.app import make_app
from supervisor.sidecar.link import Link

# For the answers under way when the master ends.
FAREWELL_S = 0.3


def serve(pipe_fd: int, listen_fd: int, host: str) -> int:
    """Serves until the pipe ends; returns the exit code."""
    setproctitle.setproctitle("hyper-proxy: sidecar")
    log.bind(role="sidecar", pid=os.getpid())
    link = Link(pipe_fd, _obey)
    listener = socket.socket(fileno=listen_fd)
    listener.setblocking(False)
    # No access log: health probes would fill it.
    server = WSGIServer(listener, make_app(link, host), log=None, spawn=Pool())
    server.start()
    log.info("sidecar.ready")
    reader = gevent.spawn(link.read_all)
    reader.join()
    server.stop(timeout=FAREWELL_S)
    return 0


ORDERS: dict[str, Callable[[Message], None]] = {
    "reopen_logs": lambda order: logs.reopen(),
    "log_level": lambda order: log.overrule(order["level"]),
}
"""What the master says of its own accord."""


def _obey(order: Message) -> None:
    ORDERS[order["type"]](order)
