"""The sidecar's end of the pipe: asks the master and waits for the answer, many at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
from gevent import socket
from gevent.event import AsyncResult
from gevent.lock import Semaphore

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.frames import FrameReader, Message, encode_frame
from supervisor.sidecar.turnstile import Turnstile

BEAT_S = 0.25  # well below the shortest [proxy] hang_timeout_s
# What the workers themselves have to answer, how often at most, and how often at once.
OF_WORKERS = frozenset({"stats", "clients", "stack"})
WORKERS_EVERY_S = 0.05
WORKERS_BURST = 20
_READ_BYTES = 256 * 1024


class NoAnswer(HyperProxyError):
    """The master did not answer in time."""

    kind = "no_answer"


class Link:
    """Questions to the master. `on_order` takes what the master sends of its own accord."""

    def __init__(self, fd: int, on_order: Callable[[Message], None]) -> None:
        self._sock = socket.socket(fileno=fd)
        self._on_order = on_order
        self._numbers = itertools.count(1)
        self._waiting: dict[int, AsyncResult[dict[str, Any]]] = {}
        self._parts: dict[int, list[dict[str, Any]]] = {}
        self._writing = Semaphore()
        self._turnstile = Turnstile(WORKERS_EVERY_S, WORKERS_BURST)

    def ask(self, verb: str, timeout_s: float, **arguments: object) -> dict[str, Any]:
        """The master's answer to a verb of its table (supervisor/desk.py). Raises NoAnswer and Crowded."""
        if verb in OF_WORKERS:
            self._turnstile.pass_through(timeout_s)
        number = next(self._numbers)
        result = self._waiting[number] = AsyncResult()
        try:
            with self._writing:
                self._sock.sendall(encode_frame({**arguments, "type": "command", "id": number, "verb": verb}))
            if not result.wait(timeout_s):
                raise NoAnswer(f"the master did not answer '{verb}' within {timeout_s:g} s")
            answer: dict[str, Any] = result.get()
            return answer
        except ConnectionError as error:
            raise NoAnswer(f"the master has ended: '{verb}' was not asked") from error
        finally:
            del self._waiting[number]
            self._parts.pop(number, None)

    def beat(self) -> None:
        """Tells the master that this process lives, until the master is gone."""
        with suppress(ConnectionError):
            while True:
                with self._writing:
                    self._sock.sendall(encode_frame({"type": "beat"}))
                gevent.sleep(BEAT_S)

    def read_all(self) -> None:
        """Hands out answers until the master closes its end, or is killed."""
        reader = FrameReader()
        with suppress(ConnectionError):
            while data := self._sock.recv(_READ_BYTES):
                for message in reader.feed(data):
                    self._take(message)

    def _take(self, message: Message) -> None:
        number = message.get("id", 0)
        waiting = self._waiting.get(number)
        if message["type"] == "part":
            if waiting is not None:  # else nobody waits any more
                self._parts.setdefault(number, []).append(message["data"])
        elif message["type"] != "reply":
            self._on_order(message)
        elif waiting is not None:
            data = message["data"]
            if "snapshots" in data:
                data["snapshots"] = self._parts.pop(number, [])
            waiting.set(data)
