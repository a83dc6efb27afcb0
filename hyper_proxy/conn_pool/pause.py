"""How long a server that has failed is left alone."""

from __future__ import annotations

import random
from time import monotonic

from hyper_proxy.config.model import Backoff


class Pause:
    """How long not to try again: doubles with each failure in a row; jitter keeps workers from returning together."""

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failures = 0
        self.until = 0.0
        self.reason = ""

    def lengthen(self, reason: str) -> None:
        """After one more failure."""
        delay = min(self.backoff.max_ms, self.backoff.base_ms * 2 ** min(self.failures, 20)) / 1000
        self.failures += 1
        self.until = monotonic() + delay * random.uniform(0.5, 1.0)
        self.reason = reason
