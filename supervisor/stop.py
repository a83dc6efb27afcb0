"""The end of the fleet: draining, or fast; always with a deadline after which what is left is killed."""

from __future__ import annotations

import signal

from hyper_proxy.common import log
from supervisor.children import Children
from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.loop import Loop, Timer
from supervisor.slots import Slot

# A fast stop lets requests that are under way finish for so long, and kills what is left within two seconds of the
# signal.
FAST_DRAIN_S = 0.8
# What a worker may need beyond its deadline to send its last counters.
GRACE_S = 0.5
# A worker writes its stack as soon as the signal reaches it, in many small pieces: so long it is alone, and all of them
# together do not take longer than ALL_STACKS_S.
STACK_S = 0.05
ALL_STACKS_S = 0.5


class Stopper:
    """Stops the workers. `mode` is "" until the end is asked for, then "draining" or "stopping"."""

    def __init__(self, loop: Loop, children: Children, current: Current, fleet: Fleet) -> None:
        self._loop = loop
        self._children = children
        self._current = current
        self._fleet = fleet
        self._timer: Timer | None = None
        self.mode = ""

    @property
    def done(self) -> bool:
        """Has the end been asked for, and is no worker left?"""
        return bool(self.mode) and not self._fleet.live()

    def drain(self) -> None:
        """Stops accepting and lets clients finish, at most drain_timeout_s; asked a second time, stops fast."""
        if self.mode:
            self.fast()
        else:
            self._begin("draining", self._current.config.drain_timeout_s)

    def explain(self) -> None:
        """Lets each worker write its Python stack to standard error, one after the other, and stops fast."""
        workers = [(slot.index, slot.pid) for slot in self._fleet.live()]
        self._explain(workers, min(STACK_S, ALL_STACKS_S / max(1, len(workers))))

    def _explain(self, workers: list[tuple[int, int]], pause_s: float) -> None:
        if not workers:
            self.fast()
            return
        slot, pid = workers[0]
        log.warning("worker.stack", slot=slot, worker=pid)
        self._children.kill(pid, signal.SIGQUIT)
        self._loop.later(pause_s, lambda: self._explain(workers[1:], pause_s))

    def fast(self) -> None:
        """Stops within two seconds."""
        if self.mode != "stopping":
            self._begin("stopping", FAST_DRAIN_S)

    def _begin(self, mode: str, seconds: float) -> None:
        self.mode = mode
        log.info(f"fleet.{mode}", seconds=seconds)
        self._fleet.stop_waiting()
        for slot in self._fleet.live():
            self._fleet.drain(slot, seconds)
        # New clients are refused at once instead of waiting in a queue that nobody will empty.
        self._current.close_listeners()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.later(seconds + GRACE_S, self._expired)

    def _expired(self) -> None:
        left: list[Slot] = self._fleet.live()
        for slot in left:
            log.warning("worker.not_drained", slot=slot.index, worker=slot.pid)
            self._children.kill(slot.pid, signal.SIGKILL)
