"""The workers: born, greeted, missed and replaced, slot by slot of the roster (supervisor/roster.py).

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
from hyper_proxy.common.board import BOARDS
from hyper_proxy.common.cells import CELLS
from hyper_proxy.common.frames import Message
from hyper_proxy.common.leases import LEASES
from hyper_proxy.config.model import Config
from supervisor.children import Children
from supervisor.current import Current
from supervisor.exits import Exit, explain_failure
from supervisor.loop import Loop
from supervisor.pipe import Pipe
from supervisor.roster import Roster
from supervisor.slots import LOOP_DEATHS, Slot, SlotState

# Importing and building takes well below a second; a worker that needs this long hangs.
BOOT_TIMEOUT_S = 30.0

# From the end of a worker's pipe to the end of the worker.
MUTE_GRACE_S = 1.0

# From the signal at which a hung worker shows its stack to the one that nothing outlives.
ABORT_GRACE_S = 2.0

# For a candidate that is not wanted any more: to be born, if it is not, and to close what it has opened.
DISMISS_GRACE_S = 5.0

EnterWorker = Callable[[Birth, Config], int]
"""Lives a worker's life in the forked child; returns the exit code."""

Shed = Callable[[frozenset[socket.socket]], None]
"""Closes in a forked child all that is the master's, except these sockets."""

Route = Callable[[Slot, Message], None]


class Fleet(Roster):
    """All slots and their workers. Each of `on_death` is called with the slot whose worker has ended, and with its last
    snapshot, which the slot does not have any more; each of `on_change` whenever a worker is ready, hangs or has ended.
    `serving` is True once any worker was ready."""

    def __init__(self, loop: Loop, children: Children, current: Current, enter: EnterWorker, shed: Shed) -> None:
        super().__init__(current.slots)
        self._loop = loop
        self._children = children
        self._current = current
        self._enter = enter
        self._shed = shed
        LEASES.share()
        BOARDS.share()
        CELLS.share()
        self.held = False
        self.serving = False
        self.stopping = False
        self.on_ready: list[Callable[[Slot], None]] = []
        self.on_death: list[Callable[[Slot, dict[str, Any]], None]] = []
        self.on_change: list[Callable[[], None]] = []
        self.routes: dict[str, Route] = {"hello": self._hello, "ready": self._ready, "failed": self._failed}

    def start(self) -> None:
        """Starts the first generation. Raises OSError when the system refuses a process."""
        for slot in self.slots:
            self._spawn(slot, self._current, self.held)

    def serve(self) -> None:
        """Lets a crew serve that was `held` at its start."""
        self.held = False
        for slot in self.slots:
            self.send(slot, {"type": "serve"})

    def hire(self, plan: Current) -> None:
        """Starts the crew of a configuration that is not in force yet: it gets ready and serves nobody.

        Raises OSError when the system refuses a process; what was started ends then.
        """
        candidates = self.nominate(plan.slots)
        try:
            for slot in candidates:
                self._spawn(slot, plan, held=True)
        except OSError:
            self.dismiss()
            raise

    def dismiss(self) -> None:
        """Ends the candidates, who have served nobody."""
        for slot in self.withdraw():
            self.drain(slot, 0.0)
            self._end_at_last(slot.pid)

    def _end_at_last(self, pid: int) -> None:
        self._loop.later(DISMISS_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))

    def drain(self, slot: Slot, seconds: float) -> None:
        """Lets a worker end when its clients have finished; one that is being born, as soon as it is: what it has
        opened by then, a file of SQLite, is closed."""
        if slot.state is SlotState.BOOTING:
            slot.unwanted = True
        else:
            slot.state = SlotState.DRAINING
        self.send(slot, {"type": "drain", "seconds": seconds})

    def promote(self) -> list[Slot]:
        """The candidates take the place of the crew in force, whose live slots are the result, and serve."""
        relieved = self.relieve()
        self.serve()
        return relieved

    def kill(self, slot: Slot, why: str) -> None:
        """Ends a worker that can't be talked to; its successor comes by itself."""
        log.error("worker.killed", slot=slot.index, worker=slot.pid, why=why)
        slot.blame = why
        self._children.kill(slot.pid, signal.SIGKILL)

    def abort(self, slot: Slot, why: str) -> None:
        """Ends a worker that hangs: first by the signal at which it shows its stack."""
        log.error("worker.hung", slot=slot.index, worker=slot.pid, why=why)
        slot.state, slot.blame = SlotState.HUNG, why
        pid = slot.pid
        self._children.kill(pid, signal.SIGABRT)
        self._loop.later(ABORT_GRACE_S, lambda: self._children.kill(pid, signal.SIGKILL))
        self._changed()

    def start_slot(self, slot: Slot) -> None:
        """Starts the worker of a slot that has none, now; when the system refuses it is tried again."""
        slot.state = SlotState.WAITING
        self._respawn(slot)

    def add_slot(self) -> Slot:
        """One slot more, at the end; its worker is started on the sockets that are in force for it."""
        slot = self.append()
        self.start_slot(slot)
        return slot

    def stop_waiting(self) -> None:
        """Gives up all slots that have no worker now."""
        self.stopping = True
        for slot in self.everyone():
            if not slot.live:
                slot.state = SlotState.STOPPED

    def send(self, slot: Slot, message: Message, fds: tuple[int, ...] = ()) -> bool:
        """Queues a message to a slot's worker; False when there is none or it is too far behind."""
        return slot.pipe is not None and slot.pipe.send(message, fds)

    def close_in_child(self) -> None:
        """Closes the master's ends of all pipes in a fresh child."""
        for slot in self.everyone():
            if slot.pipe is not None:
                slot.pipe.close_in_child()

    def _changed(self) -> None:
        for call in self.on_change:
            call()

    def _spawn(self, slot: Slot, plan: Current, held: bool) -> None:
        ours, theirs = socket.socketpair()
        offered = plan.of(slot.index)
        generation, config = plan.generation, plan.config

        def shed() -> None:
            ours.close()
            self._shed(frozenset(sock for _, sock in offered))

        def live() -> int:
            # The numbers go on, the objects end here: otherwise a late clean-up would close what gevent has wrapped
            # anew.
            born = tuple(BornListener(wish.instance, wish.listen.address, sock.detach()) for wish, sock in offered)
            birth = Birth(
                slot.index, generation, theirs.detach(), born, slot.cell, held, self._current.overrides.for_workers()
            )
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
        if self.stopping or slot not in self.slots or slot.state not in (SlotState.WAITING, SlotState.QUARANTINED):
            return
        try:
            self._spawn(slot, self._current, self.held)
        except OSError as error:
            delay_s = slot.note_death(Exit(None, str(error), 0.0))
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
        slot.note_ready()
        if slot.unwanted:
            slot.state = SlotState.DRAINING
            return
        boot_s = slot.ready_at_s - slot.born_at_s
        log.info("worker.ready", slot=slot.index, worker=slot.pid, generation=slot.generation, boot_s=boot_s)
        self.serving = True
        for call in self.on_ready:
            call(slot)
        self._changed()

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
        pid, snapshot = slot.pid, slot.snapshot
        booting, expected = slot.state is SlotState.BOOTING, slot.state is SlotState.DRAINING and status == 0
        end = Exit(status, slot.blame or slot.boot_error, time.monotonic() - slot.born_at_s)
        if booting and not slot.boot_error:
            slot.boot_error = explain_failure(status)
        delay_s = slot.note_death(end)
        report = log.info if expected or self.stopping else log.error
        # Before any worker has served, all are likely to fail alike, and the master says why, once, as it gives up.
        detail = {"error": slot.boot_error} if booting and self.serving else {}
        report("worker.ended", slot=slot.index, worker=pid, cause=end.cause, **detail)
        if self.stopping or slot not in self.slots:
            slot.state = SlotState.STOPPED
        else:
            if slot.state is SlotState.QUARANTINED:
                log.error("worker.quarantined", slot=slot.index, deaths=LOOP_DEATHS, seconds=delay_s)
            self._loop.later(delay_s, lambda: self._respawn(slot))
        for call in self.on_death:
            call(slot, snapshot)
        self.strike(slot)
        self._changed()
