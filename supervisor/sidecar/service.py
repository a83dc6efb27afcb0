"""Serves the application on the socket that the master bound, and ends when the master does."""

from __future__ import annotations

import faulthandler
import os
import socket
from collections.abc import Callable

import gevent
import setproctitle
from gevent.event import Event

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from hyper_proxy.config.model import Log
from supervisor import logs
from supervisor.sidecar.app import make_app
from supervisor.sidecar.history import History
from supervisor.sidecar.link import Link
from supervisor.sidecar.sampler import sample_for_ever
from supervisor.sidecar.server import Server

# For the answers under way when the master ends.
FAREWELL_S = 0.3
# The same when another sidecar takes the place of this one: the master still answers.
LEAVE_S = 1.0


def serve(pipe_fd: int, listen_fd: int, host: str) -> int:
    """Serves until the pipe ends or the master says so; returns the exit code."""
    faulthandler.enable()  # the master ends a sidecar that hangs with ABRT
    setproctitle.setproctitle("hyper-proxy: sidecar")
    log.bind(role="sidecar", pid=os.getpid())
    left, ended = Event(), Event()
    link = Link(pipe_fd, lambda order: _obey(order, left))
    listener = socket.socket(fileno=listen_fd)
    listener.setblocking(False)
    history = History()
    server = Server(listener, make_app(link, host, history))
    server.start()
    log.info("sidecar.ready")
    others = [gevent.spawn(link.beat), gevent.spawn(sample_for_ever, link, history)]
    for greenlet in (gevent.spawn(link.read_all), *others):  # without one of them it is better to begin anew
        greenlet.link(lambda _: ended.set())
    gevent.wait([left, ended], count=1)
    if left.is_set():
        server.leave()
    gevent.killall(others)
    server.stop(timeout=LEAVE_S if left.is_set() else FAREWELL_S)
    return 0


ORDERS: dict[str, Callable[[Message], object]] = {
    "reopen_logs": lambda order: logs.reopen(),
    "log_level": lambda order: log.overrule(order["level"]),
    "log_settings": lambda order: logs.apply(Log(**order["settings"])),
}
"""What the master says of its own accord."""


def _obey(order: Message, left: Event) -> None:
    if order["type"] == "leave":
        left.set()
    else:
        ORDERS[order["type"]](order)
