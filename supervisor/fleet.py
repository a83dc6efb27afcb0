"""The workers: born, greeted, missed and replaced, slot by slot.

Messages of a worker go to the concern that asked for them, by the table `routes`: type -> handler(slot, message).
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.birth import Birth, BornListener
from hyper_proxy.common.frames import Message
from hyper_proxy.common.segment import Segment
from hyper_proxy.config.model import Config
from supervisor.children import Children
from supervisor.current import Current
from supervisor.loop import Loop
from supervisor.pipe import Pipe
from supervisor.slots import Slot, SlotState
from supervisor.spawn import explain_exit

# Importing and building takes well below a second; a worker that needs this long hangs.
BOOT_TIMEOUT_S = 30.0

# From the end of a worker's pipe to the end of the worker.
MUTE_GRACE_S = 1.0

EnterWorker = Callable[[Birth, Config], int]
"""Lives a worker's life in the forked child; returns the exit code."""

Shed = Callable[[frozenset[socket.socket]], None]
"""Closes in a forked child all that is the master's, except these sockets."""

Route = Callable[[Slot, Message], None]


class Fleet:
    """All slots. Each of `on_death` is called with the slot whose worker has ended, and with its last snapshot, which
    the slot does not have any more; `serving` is True once any worker was ready."""

    def __init__(self, loop: Loop, children: Children, current: Current, enter: EnterWorker, shed: Shed) -> None:
        self._loop = loop
        self._children = children
        self._current = current
        self._enter = enter
        self._shed = shed
        segment = Segment(current.slots)
        self.slots = [Slot(index, cell) for index, cell in enumerate(segment.cells)]
        self.serving = False
        self.stopping = False
        self.on_death: list[Callable[[Slot, dict[str, Any]], None]] = []
        self.routes: dict[str, Route] = {"hello": self._hello, "ready": self._ready, "failed": self._failed}

    def start(self) -> None:
        """Starts the first generation. Raises OSError when the system refuses a process."""
        for slot in self.slots:
            self._spawn(slot)

    def live(self) -> list[Slot]:
        """The slots that have a worker."""
        return [slot for slot in self.slots if slot.live]

    def members(self) -> list[Slot]:
        """The slots whose worker serves or is about to: those that take part in a reload."""
        return [slot for slot in self.slots if slot.state in (SlotState.BOOTING, SlotState.READY)]

    def kill(self, slot: Slot, why: str) -> None:
        """Ends a worker that can't be talked to; its successor comes by itself."""
        log.error("worker.killed", slot=slot.index, worker=slot.pid, why=why)
        self._children.kill(slot.pid, signal.SIGKILL)

    def stop_waiting(self) -> None:
        """Gives up all slots that have no worker now, and the workers that serve nobody yet."""
        self.stopping = True
        for slot in self.slots:
            if slot.state is SlotState.WAITING:
                slot.state = SlotState.STOPPED
            elif slot.state is SlotState.BOOTING:
                self._children.kill(slot.pid, signal.SIGKILL)

    def send(self, slot: Slot, message: Message, fds: tuple[int, ...] = ()) -> bool:
        """Queues a message to a slot's worker; False when there is none or it is too far behind."""
        return slot.pipe is not None and slot.pipe.send(message, fds)

    def close_in_child(self) -> None:
        """Closes the master's ends of all pipes in a fresh child."""
        for slot in self.slots:
            if slot.pipe is not None:
                slot.pipe.close_in_child()

    def _spawn(self, slot: Slot) -> None:
        ours, theirs = socket.socketpair()
        offered = self._current.of(slot.index)
        generation, config = self._current.generation, self._current.config

        def shed() -> None:
            ours.close()
            self._shed(frozenset(sock for _, sock in offered))

        def live() -> int:
            # The numbers go on, the objects end here: otherwise a late clean-up would close what gevent has wrapped
            # anew.
            born = tuple(BornListener(wish.instance, wish.listen.address, sock.detach()) for wish, sock in offered)
            birth = Birth(slot.index, generation, theirs.detach(), born, slot.cell, overrides=self._current.overrides.for_workers())
            return self._enter(birth, config)

        try:
            name = f"worker {slot.index} gen {generation} starting"
            pid = self._children.fork(name, shed, live, lambda status: self._gone(slot, status))
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        pipe = Pipe(self._loop, ours, lambda message: self._dispatch(slot, message), lambda: self._mute(slot, pid))
        slot.note_birth(pid, pipe, generation)
        births = slot.births
        self._loop.later(BOOT_TIMEOUT_S, lambda: self._check_boot(slot, births))

    def _respawn(self, slot: Slot) -> None:
        if self.stopping or slot.state is not SlotState.WAITING:
            return
        try:
            self._spawn(slot)
        except OSError as error:
            delay_s = slot.note_death(f"fork: {error}")
            log.error("worker.fork_failed", slot=slot.index, error=error, retry_s=delay_s)
            self._loop.later(delay_s, lambda: self._respawn(slot))

    def _dispatch(self, slot: Slot, message: Message) -> None:
        route = self.routes.get(message["type"])
        if route is None:
            log.error("worker.unknown_message", slot=slot.index, message=message["type"])
        else:
            route(slot, message)

    def _hello(self, slot: Slot, message: Message) -> None:
        log.debug("worker.born", slot=slot.index, worker=message["pid"], generation=message["generation"])

    def _ready(self, slot: Slot, message: Message) -> None:
        slot.state = SlotState.READY
        boot_s = time.monotonic() - slot.born_at_s
        log.info("worker.ready", slot=slot.index, worker=slot.pid, generation=slot.generation, boot_s=boot_s)
        self.serving = True

    def _failed(self, slot: Slot, message: Message) -> None:
        slot.boot_error = message["error"]

    def _check_boot(self, slot: Slot, births: int) -> None:
        if slot.births == births and slot.state is SlotState.BOOTING:
            slot.boot_error = f"it was not ready within {BOOT_TIMEOUT_S:g} s"
            self.kill(slot, slot.boot_error)

    def _mute(self, slot: Slot, pid: int) -> None:
        # A worker closes its pipe only by ending; if it does not end, nothing can be said to it any more.
        self._loop.later(MUTE_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))

    def _gone(self, slot: Slot, status: int) -> None:
        if slot.pipe is not None:
            slot.pipe.finish()
        pid, cause, snapshot = slot.pid, explain_exit(status), slot.snapshot
        booting, expected = slot.state is SlotState.BOOTING, slot.state is SlotState.DRAINING and status == 0
        delay_s = slot.note_death(cause)
        if booting and not slot.boot_error:
            slot.boot_error = cause
        if self.stopping:
            slot.state = SlotState.STOPPED
        else:
            self._loop.later(delay_s, lambda: self._respawn(slot))
        report = log.info if expected or self.stopping else log.error
        # Before any worker has served, all are likely to fail alike, and the master says why, once, as it gives up.
        detail = {"error": slot.boot_error} if booting and self.serving else {}
        report("worker.ended", slot=slot.index, worker=pid, cause=cause, **detail)
        for call in self.on_death:
            call(slot, snapshot)
