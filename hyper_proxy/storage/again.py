"""A change that somebody else was faster with is tried again, as long as a server may take for an answer."""

from __future__ import annotations

from collections.abc import Iterator
from random import uniform
from time import monotonic

import gevent

PAUSE_S = 0.002  # the longest one before the second attempt; it grows with each
MOST_PAUSES = 20  # of this length is the longest
BUSY = "others were faster with the same key again and again, as long as timeout.read_ms"


def again(seconds: float) -> Iterator[None]:
    """One turn for each attempt, with pauses of no fixed length between them; the last one begins within `seconds`."""
    deadline = monotonic() + seconds
    attempt = 0
    while not attempt or monotonic() < deadline:
        yield
        attempt = min(attempt + 1, MOST_PAUSES)
        gevent.sleep(uniform(0, PAUSE_S * attempt))
