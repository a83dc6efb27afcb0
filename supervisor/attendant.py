"""Looks after the sidecar: starts it on its socket, starts it again when it ends, answers what it asks.

It holds no state that traffic needs; between its death and its return, its socket's queue keeps the callers.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from supervisor.children import Children
from supervisor.current import Current
from supervisor.exits import explain_exit
from supervisor.fleet import ABORT_GRACE_S, MUTE_GRACE_S, Shed
from supervisor.loop import Loop
from supervisor.pipe import Pipe
from supervisor.slots import HEALTHY_S, backoff_s

# Longer than the sidecar gives its own answers (supervisor/sidecar/service.py).
STOP_GRACE_S = 0.6
LEAVE_GRACE_S = 1.5

# It imports Flask and more. Its first sign of life is due so much later than any other.
BOOT_S = 20.0

Answer = Callable[[dict[str, Any]], None]
Verb = Callable[[Answer, Message], None]
"""Does what the sidecar asks for and calls the answer, at once or later. The message has the arguments of the verb."""

EnterSidecar = Callable[[int, int, str], int]
"""Lives the sidecar's life in the forked child: descriptor of the pipe, of the listening socket, and the socket's
host."""


class Attendant:
    """The sidecar's keeper. `verbs` is the table of what it may ask; `beat_at_s` is when it gave its last sign of life
    (CLOCK_MONOTONIC), in the future while it boots, 0 when there is nobody to watch."""

    def __init__(
        self, loop: Loop, children: Children, current: Current, enter: EnterSidecar, shed: Shed, verbs: dict[str, Verb]
    ) -> None:
        self._loop = loop
        self._children = children
        self._current = current
        self._enter = enter
        self._shed = shed
        self._verbs = verbs
        self._pipe: Pipe | None = None
        self._leaving: dict[int, Pipe] = {}
        self._born_at_s = 0.0
        self._failures = 0
        self._stopping = False
        self.pid = 0
        self.beat_at_s = 0.0

    def start(self) -> None:
        """Starts the sidecar. Raises OSError when the system refuses a process."""
        ours, theirs = socket.socketpair()
        admin = self._current.admin

        def shed() -> None:
            ours.close()
            self._shed(frozenset(admin.sockets))

        def live() -> int:
            return self._enter(theirs.detach(), admin.sockets[0].detach(), admin.listen.host)

        try:
            pid = self._children.fork("sidecar starting", shed, live, lambda status: self._gone(pid, status))
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._born_at_s = time.monotonic()
        self.beat_at_s = self._born_at_s + BOOT_S
        pipe = Pipe(self._loop, ours, lambda message: self._asked(pipe, message), lambda: self._mute(pid))
        self.pid, self._pipe = pid, pipe

    def move(self) -> None:
        """Starts a sidecar on the socket that is in force now; the one that served finishes its answers and ends."""
        pipe, pid = self._pipe, self.pid
        self._pipe, self.pid = None, 0
        if pipe is not None:
            self._leaving[pid] = pipe
            self._dismiss(pid, pipe)
        self._restart()

    def leave(self) -> None:
        """Ends the sidecar for good, since another master has one on the same socket: it takes nobody any more."""
        self._stopping = True
        if self._pipe is not None:
            self._dismiss(self.pid, self._pipe)

    def _dismiss(self, pid: int, pipe: Pipe) -> None:
        pipe.send({"type": "leave"})
        self._loop.later(LEAVE_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))

    def abort(self, why: str) -> None:
        """Ends a sidecar that hangs: first by the signal at which it shows its stack. Another one follows."""
        log.error("sidecar.hung", sidecar=self.pid, why=why)
        self.beat_at_s, pid = 0.0, self.pid
        self._children.kill(pid, signal.SIGABRT)
        self._loop.later(ABORT_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))

    def stop(self) -> None:
        """Ends the sidecar for good. It may finish its answers: who asked for the end wants to hear of it."""
        if self._stopping:
            return
        self._stopping = True
        if self._pipe is not None:
            self._pipe.say_end()
        pid = self.pid
        self._loop.later(STOP_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))

    def send(self, message: Message) -> None:
        """Tells the sidecar, if it is there; the next one has what its master has."""
        if self._pipe is not None:
            self._pipe.send(message)

    def close_in_child(self) -> None:
        """Closes the master's ends of the pipes in a fresh child."""
        for pipe in (*self._leaving.values(), *([self._pipe] if self._pipe else [])):
            pipe.close_in_child()

    def _asked(self, pipe: Pipe, message: Message) -> None:
        if message["type"] == "beat":
            self._beat(pipe)
            return
        number = message.get("id")
        verb = self._verbs.get(message.get("verb", ""))
        if verb is None:
            log.error("sidecar.unknown_message", message=message)
            return

        def answer(data: dict[str, Any]) -> None:
            # A message has a limit, and a fleet may have many workers: their snapshots travel one by one.
            if snapshots := data.get("snapshots"):
                data = {**data, "snapshots": []}
                for snapshot in snapshots:
                    pipe.send({"type": "part", "id": number, "data": snapshot})
            pipe.send({"type": "reply", "id": number, "data": data})

        verb(answer, message)

    def _beat(self, pipe: Pipe) -> None:
        if pipe is self._pipe and self.beat_at_s:
            self.beat_at_s = time.monotonic()

    def _mute(self, pid: int) -> None:
        self._loop.later(MUTE_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))

    def _gone(self, pid: int, status: int) -> None:
        leaving = self._leaving.pop(pid, None)
        if leaving is not None:
            leaving.close()
            return
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        self.pid, self.beat_at_s = 0, 0.0
        if self._stopping:
            return
        if time.monotonic() - self._born_at_s >= HEALTHY_S:
            self._failures = 0
        delay_s = backoff_s(self._failures)
        self._failures += 1
        log.error("sidecar.ended", sidecar=pid, cause=explain_exit(status), retry_s=delay_s)
        self._loop.later(delay_s, self._restart)

    def _restart(self) -> None:
        if self._stopping:
            return
        try:
            self.start()
        except OSError as error:
            delay_s = backoff_s(self._failures)
            self._failures += 1
            log.error("sidecar.fork_failed", error=error, retry_s=delay_s)
            self._loop.later(delay_s, self._restart)
