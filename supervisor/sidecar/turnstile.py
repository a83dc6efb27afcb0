"""How often workers may be asked: whoever hammers the sidecar must not make them count instead of serve."""

from __future__ import annotations

import time

import gevent

from hyper_proxy.common.errors import HyperProxyError


class Crowded(HyperProxyError):
    """Too many want to know at once."""

    kind = "crowded"


class Turnstile:
    """Lets one through every `every_s` seconds, and `burst` at once after a quiet time."""

    def __init__(self, every_s: float, burst: int) -> None:
        self._every_s = every_s
        self._burst = burst
        self._next_s = 0.0

    def pass_through(self, patience_s: float) -> None:
        """Returns when it is the caller's turn; raises Crowded at once if that would be later than `patience_s`."""
        now = time.monotonic()
        turn = max(self._next_s, now - self._burst * self._every_s)
        if turn - now > patience_s:
            raise Crowded(f"more than {1 / self._every_s:g} questions a second for the workers; ask again later")
        self._next_s = turn + self._every_s
        if turn > now:
            gevent.sleep(turn - now)
