"""Asks both nodes of a pair for signs of life, beside the requests, and acts on what that shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import gevent
from gevent.event import Event

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.conn_pool.rooms.pair import BEHIND, DOWN, Pair
from hyper_proxy.stats.classes import ADMIN

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.node import Greeting


class Heart:
    """mend: makes a side equal that is behind; called in a greenlet of its own, in one worker at a time."""

    def __init__(
        self, pair: Pair, greeting: Greeting, is_error: Callable[[bytes], bool], mend: Callable[[int], None]
    ) -> None:
        self.pair = pair
        self.greeting = greeting
        self.mend = mend
        self.signs = [Sign(pair, side, is_error) for side in range(2)]
        self.due = Event()
        self.stopped = False
        pair.wake = self.due.set
        gevent.spawn(self._run)

    def stop(self) -> None:
        """Ask no more; another heart may serve the same nodes."""
        self.stopped = True
        self.due.set()

    def _run(self) -> None:
        while not self.stopped:
            self.due.clear()
            for sign in self.signs:
                self._ask(sign)
            self.pair.follow()
            for side in range(2):
                self._tend(side)
            self.pair.settle()
            self.due.wait(self.pair.rooms.interval_ms / 1000)
        self.pair.place.let_go()
        self.pair.decided()

    def _ask(self, sign: Sign) -> None:
        node = self.pair.nodes[sign.side]
        if node.out:
            self.pair.fell(sign.side, f"{node.out} by an operator")
        elif not sign.asked:
            node.pause.until = 0.0  # each question must show something new, and one is no crowd
            sign.asked = True
            node.lane(self.greeting).submit(self.greeting.probe, ADMIN, sign, 0)

    def _tend(self, side: int) -> None:
        state = self.pair.state(side)
        if state & DOWN and self.pair.has_held(side):
            self.pair.rise(side)
        elif state == BEHIND and self.pair.heard_since[side] is not None and self.pair.place.hold():
            gevent.spawn(self._mend, side)

    def _mend(self, side: int) -> None:
        try:
            self.mend(side)
        except BackendError as error:
            self.pair.suspect(side, error)
        finally:
            self.pair.place.let_go()


class Sign(Gather):
    """The question for a sign of life of one side; there is one at a time."""

    def __init__(self, pair: Pair, side: int, is_error: Callable[[bytes], bool]) -> None:
        # Not Gather's: no greenlet waits here.
        self.pair = pair
        self.side = side
        self.is_error = is_error
        self.asked = False

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        self.asked = False
        if isinstance(reply, BackendError) or self.is_error(reply):
            node = self.pair.nodes[self.side]
            self.pair.suspect(self.side, node.error("protocol", f"not well, it said {reply!r:.80}"))
        else:
            self.pair.heard(self.side)

    def fail(self, position: int, error: BackendError) -> None:
        self.asked = False
        self.pair.suspect(self.side, error)
