"""How long a server that has failed is left alone."""

from __future__ import annotations

import random
from time import monotonic

from hyper_proxy.config.model import Backoff
from hyper_proxy.conn_pool.reply_error import Loading, NotSelected

SPOKEN = (Loading.kind, NotSelected.kind)  # kinds that who would not wait is told, too


class Pause:
    """How long not to try again: doubles with each failure in a row; jitter keeps workers from returning together."""

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failures = 0
        self.until = 0.0
        self.reason = ""
        self.kind = "backoff"  # of the errors of those who would not wait

    def lengthen(self, reason: str, kind: str = "") -> None:
        """After one more failure, of this kind."""
        delay = min(self.backoff.max_ms, self.backoff.base_ms * 2 ** min(self.failures, 20)) / 1000
        self.failures += 1
        self.until = monotonic() + delay * random.uniform(0.5, 1.0)
        self.reason = reason
        self.kind = kind if kind in SPOKEN else "backoff"
