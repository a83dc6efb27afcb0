"""Asks both nodes of a pair for signs of life, beside the requests, and acts on what that shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event

from hyper_proxy.common import log
from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.conn_pool.rooms.pair import BEHIND, DOWN, Pair
from hyper_proxy.stats.classes import ADMIN

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting


OURS = ("exhausted", "busy", "queue", "closed", "internal")
"""Kinds of failures that keep this worker from asking: there will be no verdict, and who waits for one is told."""


class Heart:
    """question: for a sign of life; hear: from side and answer to what is wrong with it, "" for nothing.

    mend: makes a side equal that is behind; called in a greenlet of its own, in one worker at a time.
    """

    def __init__(
        self, pair: Pair, greeting: Greeting, question: bytes, hear: Callable[[int, bytes], str],
        mend: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.pair = pair
        self.greeting = greeting
        self.question = question
        self.mend = mend
        self.tidy: Callable[[], None] = _nothing  # is called at every beat
        self.is_due: Callable[[int], bool] = _always  # may a side be mended now?
        self.signs = [Sign(pair, side, hear) for side in range(2)]
        self.due = Event()
        self.stopped = False
        self.beats = False
        self.mending = False
        self.told = ["", ""]  # why a side could not be made equal
        pair.wake = self._wake

    def begin(self) -> None:
        """Ask, from now on."""
        self._wake()

    @property
    def is_busy(self) -> bool:
        """Does it still ask, or mend?"""
        return self.beats or self.mending

    def stop(self) -> None:
        """Ask no more; another heart may serve the same nodes. Requests that are still under way may wait for a
        verdict, now or later: for these it goes on."""
        self.stopped = True
        self.due.set()

    def _wake(self) -> None:
        self.due.set()
        if not self.beats:
            self.beats = True
            gevent.spawn(self._run)

    def _run(self) -> None:
        try:
            while not self.stopped or self.pair.waiting:
                self.due.clear()
                for sign in self.signs:
                    self._ask(sign)
                self.pair.follow()
                if not self.stopped:
                    self._care()
                self.due.wait(self.pair.rooms.interval_ms / 1000)
        finally:
            self.beats = False  # after an unforeseen fault, which is shown, the next doubt begins anew

    def _care(self) -> None:
        for side in range(2):
            self._tend(side)
        self.pair.settle()
        self.tidy()

    def _ask(self, sign: Sign) -> None:
        node = self.pair.nodes[sign.side]
        if node.out:
            self.pair.fell(sign.side, f"{node.out} by an operator")
        elif not sign.asked:
            for pause in (node.pause, node.refusals.get(self.greeting)):
                if pause is not None:
                    pause.until = 0.0  # each question must show something new, and one is no crowd
            sign.asked = True
            node.lane(self.greeting).submit(self.question, ADMIN, sign, 0)

    def _tend(self, side: int) -> None:
        state = self.pair.state(side)
        if state & DOWN and self.pair.has_held(side):
            self.pair.rise(side)
        elif not self.mending and self._may_be_mended(side) and self.is_due(side) and self.pair.place.hold():
            self.mending = True
            gevent.spawn(self._mend, side)

    def _may_be_mended(self, side: int) -> bool:
        behind = self.pair.state(side) & (BEHIND | DOWN) == BEHIND
        return behind and self.pair.heard_since[side] is not None and not self.pair.nodes[side].out

    def _mend(self, side: int) -> None:
        try:
            self.mend(side)
            self.told[side] = ""
        except BackendError as error:
            self._tell(side, str(error))  # that is no sign of life which is missing: these are asked for
        finally:
            self.mending = False
            self.pair.place.let_go()

    def _tell(self, side: int, why: str) -> None:
        """It is tried again soon: the same reason is told once."""
        if why != self.told[side]:
            self.told[side] = why
            node, room = self.pair.nodes[side].label, self.pair.names[side]
            log.warning("room.not_equal", instance=self.pair.instance, node=node, room=room, why=why)


def _nothing() -> None:
    """There is nothing to be tidied up."""


def _always(side: int) -> bool:
    """Where nothing says that it is to wait."""
    return True


class Sign(Gather):
    """The question for a sign of life of one side; there is one at a time."""

    def __init__(self, pair: Pair, side: int, hear: Callable[[int, bytes], str]) -> None:
        # Not Gather's: no greenlet waits here.
        self.pair = pair
        self.side = side
        self.hear = hear
        self.asked = False

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        self.asked = False
        fault = self.hear(self.side, reply) if isinstance(reply, bytes) else str(reply)
        if fault:
            self.pair.suspect(self.side, self.pair.nodes[self.side].error("protocol", fault))
        else:
            self.pair.heard(self.side)

    def fail(self, position: int, error: BackendError) -> None:
        self.asked = False
        self.pair.suspect(self.side, error)
        if error.kind in OURS:
            self.pair.decided()
