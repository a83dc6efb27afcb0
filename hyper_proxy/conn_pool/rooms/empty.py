"""Makes a node equal that has missed something: by removing all that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common import log
from hyper_proxy.conn_pool.asking import ask
from hyper_proxy.conn_pool.rooms.pair import MISSED, Pair
from hyper_proxy.stats.classes import ADMIN

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane

SETTLE_S = 1.0
"""After so long nothing is under way any more to a node that serves no longer, and whoever had begun to read below does
not fill it any more (hyper_proxy/tunnel/tier.py, Pace.settle_s)."""


def empty(lane: Lane, request: bytes) -> None:
    """Have a server remove all that it holds. request: its answer says OK. Raises BackendError."""
    reply = ask(lane, request, ADMIN)
    if b"OK" not in reply[:3]:
        raise lane.node.error("protocol", f"it was not emptied: {reply[:80]!r}")


class Emptying:
    """request: removes everything; its answer says OK."""

    def __init__(self, pair: Pair, greeting: Greeting, request: bytes) -> None:
        self.pair = pair
        self.greeting = greeting
        self.request = request

    def __call__(self, side: int) -> None:
        """Raises BackendError."""
        node = self.pair.nodes[side]
        missed = int(self.pair.words[MISSED[side]])
        gevent.sleep(SETTLE_S)
        empty(node.lane(self.greeting), self.request)
        gevent.sleep(SETTLE_S)
        if self.pair.cleaned(side, missed):
            log.info("room.emptied", instance=self.pair.instance, node=node.label, room=self.pair.names[side])
