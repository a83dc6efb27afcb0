"""The new program of an upgrade, until it has taken over: it gets ready beside the running master, on its sockets.

    running master                      this one
        exec ─────────────────────────► boots workers that hold
        ◄───────────────────── ready    all of them are ready
        go, counters ─────────────────► they serve, the sidecar starts
        ◄─────────────────── serving
        yours ────────────────────────► it speaks to the service manager from now on
        counters, every second ───────► those of the workers that still drain there
        (end)

    or, in the place of all this, `leave`: it has lost sight of this one, and goes on

Until "go" it has served nobody, so nothing is lost when it fails: it says why and ends. A running master that dies
meanwhile can't say "go" any more; its place is taken as soon as this one is ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from supervisor.census import Census
from supervisor.current import Current
from supervisor.estate import Estate
from supervisor.fleet import Fleet
from supervisor.listeners import drop, spread
from supervisor.loop import Loop
from supervisor.pidfile import inherit
from supervisor.pipe import Pipe
from supervisor.slots import Slot, SlotState


class Heir:
    """Takes a predecessor's place. `waiting` until it has; `owner` when nobody is before it any more; `failure` is why
    it never will. `serve` is called when the workers do, `own` when it becomes the owner."""

    def __init__(
        self,
        loop: Loop,
        estate: Estate,
        current: Current,
        fleet: Fleet,
        census: Census,
        serve: Callable[[], None],
        own: Callable[[], None],
    ) -> None:
        self._estate = estate
        self._current = current
        self._fleet = fleet
        self._census = census
        self._serve = serve
        self._own = own
        self.predecessor = estate.pid
        self._alone = False
        self.waiting = True
        self.owner = False
        self.failure = ""
        fleet.held = True
        fleet.on_ready.append(self._ready)
        fleet.on_death.append(self._ended)
        self._pipe = Pipe(loop, estate.pipe, self._told, self._left_alone)

    @property
    def followed(self) -> bool:
        """Does the predecessor still drain, and tell what its workers count?"""
        return self._pipe.open

    def decline(self, error: str) -> None:
        """Tells the predecessor why this program ends."""
        self._pipe.send({"type": "failed", "error": error})

    def close_in_child(self, keep: frozenset[Any]) -> None:
        """Closes in a fresh child what only the master needs."""
        self._pipe.close_in_child()
        for listener in (self._estate.admin, *self._estate.listeners.values()):
            listener.close_in_child(keep)

    def _ready(self, _slot: Slot) -> None:
        if self.waiting and all(slot.state is SlotState.READY for slot in self._fleet.slots):
            if self._alone:
                self._take_over()
            else:
                self._pipe.send({"type": "ready"})

    def _ended(self, slot: Slot, _snapshot: dict[str, Any]) -> None:
        if self.waiting and not self.failure and not self._fleet.stopping:
            self.failure = f"worker {slot.index}: {slot.boot_error or slot.last_exit}"

    def _told(self, message: Message) -> None:
        if message["type"] == "go":
            self._census.left = message["counters"]
            self._take_over()
            self._pipe.send({"type": "serving"})
        elif message["type"] == "counters":
            self._census.left = message["counters"]
        elif message["type"] == "yours":
            self._become_owner()
        elif message["type"] == "leave":
            self.failure = "the running master goes on"

    def _left_alone(self) -> None:
        if self.failure:
            return
        if self.waiting:
            log.warning("upgrade.alone", predecessor=self.predecessor, meaning="it has died: its place is taken")
            self._alone = True
            self._ready(self._fleet.slots[0])
        self._become_owner()

    def _become_owner(self) -> None:
        if not self.owner:
            self.owner = True
            self._own()

    def _take_over(self) -> None:
        self.waiting = False
        current, estate = self._current, self._estate
        spread(estate.listeners, current.listeners)
        self._fleet.serve()
        current.shared = False
        current.pidfile.write()
        if estate.pidfile[0] not in ("", current.pidfile.path):
            inherit(*estate.pidfile).remove()
        self._serve()
        drop(estate.listeners, current.listeners)
        if estate.admin is not current.admin:
            estate.admin.close()
        log.info("upgrade.took_over", generation=current.generation, predecessor=estate.pid)
