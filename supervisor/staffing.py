"""How many workers there are, by order of an operator: TTIN one more, TTOU one less, WINCH none. A reload ends that.

    one more     its sockets are bound, it starts
    one less     the kernel is told to leave its sockets out; it and a neighbour accept who is in their queues; then it
                 drains
    another      a slot's new worker starts; when it serves, the old one drains
    none         all drain; the sockets stay open, and clients who come wait in the queues until somebody serves there:
                 this master's next workers, or those of another master that has inherited the sockets

One step at a time: a slot's sockets must be closed before another's are bound, and none changes during a reload.
"""

from __future__ import annotations

from hyper_proxy.common import log
from supervisor.adoption import Adoption
from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.generations import Generations
from supervisor.limits import LimitError, check_file_limit
from supervisor.listeners import Listener, ListenError, drop, fit, spread, wanted
from supervisor.loop import Loop
from supervisor.reload import Reloader
from supervisor.slots import Slot, SlotState
from supervisor.steering import HANDSHAKE_S
from supervisor.verdict import Verdict

MAX_WORKERS = 1024  # as [proxy] workers
# After a slot was given up, until its worker, or its neighbour, has closed its sockets.
STEP_S = HANDSHAKE_S + 0.5


class Staffing:
    """Changes the number of slots in force, and empties all of them."""

    def __init__(
        self,
        loop: Loop,
        current: Current,
        fleet: Fleet,
        generations: Generations,
        adoption: Adoption,
        reloader: Reloader,
    ) -> None:
        self._loop = loop
        self._current = current
        self._fleet = fleet
        self._generations = generations
        self._adoption = adoption
        self._reloader = reloader
        self._wanted = current.slots
        self._parting = self._reloading = False
        self._replaced: dict[Slot, Slot] = {}
        fleet.on_ready.append(self._replace)
        reloader.on_shrink = lambda staying: adoption.see_off(staying, HANDSHAKE_S)
        reloader.on_begin.append(self._reload_begins)
        reloader.on_verdict.append(self._reload_ends)

    def more(self) -> None:
        """One worker more."""
        self._want(self._wanted + 1)

    def fewer(self) -> None:
        """One worker less; the last one stays."""
        self._want(self._wanted - 1)

    def stand_down(self) -> None:
        """All workers let their clients finish and end; the master and its sockets stay."""
        leaving = [slot for slot in self._fleet.slots if slot.live]
        if self._fleet.stopping or not leaving:
            return
        log.warning("workers.stand_down", workers=len(leaving), seconds=self._current.config.drain_timeout_s)
        for slot in list(self._fleet.slots):
            self._fleet.empty_slot(slot)
        self._generations.retire(leaving, self._current.config.drain_timeout_s, len(self._fleet.slots))

    def restart(self, index: int) -> None:
        """A slot gets a new worker; the old one serves until that is ready, then lets its clients finish."""
        slot = self._fleet.slots[index]
        if slot.live:
            self._fleet.empty_slot(slot)
            self._replaced[self._fleet.slots[index]] = slot
        self._fleet.start_slot(self._fleet.slots[index])

    def _replace(self, fresh: Slot) -> None:
        old = self._replaced.pop(fresh, None)
        if old is not None and old.live:
            self._generations.retire([old], self._current.config.drain_timeout_s, len(self._fleet.slots))

    def _come_back(self) -> None:
        """Workers for all slots that were emptied, or are in quarantine: what killed them may have been mended."""
        for slot in self._fleet.slots:
            if slot.state in (SlotState.STOPPED, SlotState.QUARANTINED) and not self._fleet.stopping:
                self._fleet.start_slot(slot)

    def _reload_begins(self) -> None:
        """Nothing changes until its verdict, but slots without a worker get one."""
        self._reloading = True
        for fresh in list(self._replaced):  # the old ones would not get the new configuration
            self._replace(fresh)
        self._come_back()

    def _reload_ends(self, verdict: Verdict) -> None:
        """The number of the file counts again; who accepts for a neighbour does so for the new instances."""
        self._reloading = False
        self._adoption.settle()
        if verdict.ok:
            self._wanted = self._current.config.worker_count
        self._step()

    def _want(self, count: int) -> None:
        limits = "" if 1 <= count <= MAX_WORKERS else f"there are 1 to {MAX_WORKERS}"
        why = "the fleet is stopping" if self._fleet.stopping else self._reloader.held or limits
        if why:
            log.warning("workers.unchanged", workers=self._wanted, why=why)
            return
        self._wanted = count
        log.info("workers.wanted", workers=count)
        self._step()

    def _step(self) -> None:
        slots = self._current.slots
        if self._reloading or self._parting or self._fleet.stopping or slots == self._wanted:
            return
        count = slots + 1 if slots < self._wanted else slots - 1
        try:
            check_file_limit(self._current.config, count)
            listeners = fit(self._current.listeners, wanted(self._current.config), count)
        except (LimitError, ListenError) as error:
            log.error("workers.not_changed", error=error)
            self._wanted = slots
            return
        before = self._current.listeners
        spread(before, listeners)
        self._adoption.see_off(count, HANDSHAKE_S)
        self._current.listeners, self._current.slots = listeners, count
        if count > slots:
            self._fleet.add_slot()
            self._step()
        else:
            self._part(before)

    def _part(self, before: dict[str, Listener]) -> None:
        """The last slot ends; its sockets get no new connections any more."""
        seconds = self._current.config.drain_timeout_s
        index = self._current.slots
        slot = self._fleet.remove_slot()
        if slot.live:
            self._generations.retire([slot], seconds, index)
        drop(before, self._current.listeners)
        self._parting = True
        self._loop.later(STEP_S, self._parted)

    def _parted(self) -> None:
        self._parting = False
        self._step()
