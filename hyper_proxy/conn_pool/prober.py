"""Asks servers that are down whether they are back: where clients seldom ask, nobody else would notice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import gevent

from hyper_proxy.conn_pool.node import Node

PROBE_S = 2.0  # with jitter, so that workers do not come together


class Prober:
    """nodes: all that this worker has, of the moment."""

    def __init__(self, nodes: Callable[[], Iterable[Node]]) -> None:
        self.nodes = nodes

    def run(self) -> None:
        """The body of a greenlet that never ends."""
        while True:
            gevent.sleep(PROBE_S * random.uniform(0.5, 1.5))
            for node in list(self.nodes()):
                if node.is_down and not node.is_backing_off and not node.out:
                    node.probe()
