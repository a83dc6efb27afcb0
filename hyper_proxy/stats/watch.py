# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Which requests of one instance are looked at more closely: the slow ones, and samples.

A session spends two comparisons on a batch: is it as slow as `slow_us`, or is `countdown`, from which it takes the
number of its requests, used up? Only then anything is looked at:

    watch.countdown -= count
    if watch.countdown <= 0:
        logged = watch.advance()            # is the batch to be logged?
        index = watch.pick(count)           # the number of a request in it whose keys are to be counted
        while index >= 0:
            index = watch.pick(count)
        watch.restart()
"""

from __future__ import annotations

from typing import Any

import cython

from hyper_proxy.common import log
from hyper_proxy.common.clock import now
from hyper_proxy.stats.access import Scribe
from hyper_proxy.stats.hotkeys import BigKeys, HotKeys

NEVER = 1 << 62
KEYS_EVERY = 100.0  # requests, on average, of which the keys of one are counted
_keys_every = cython.declare(cython.double, KEYS_EVERY)  # without a look-up
MOST_OF_A_BATCH = 8  # requests of one batch whose keys are counted


@cython.final
@cython.cclass
class Watch:
    """journal: where the records go (hyper_proxy.stats.slowlog.Journal), of all instances of this worker.

    slow      batches that took slow_us or longer
    unlogged  slow or sampled ones that were not recorded, since there were too many
    """

    def __init__(self, instance: str, journal: Any) -> None:
        self.instance = instance
        self.journal = journal
        self.scribe = Scribe(instance, log.outlet())
        self.hot = HotKeys()
        self.aged_at = now()
        self.big = BigKeys(self.aged_at)
        self.slow = 0
        self.unlogged = 0
        self.picked = 0
        self.seed = id(self) & 0x7FFFFFFF
        self.keys_due = self.step(KEYS_EVERY)
        self.configure(0, 0.0)

    def configure(self, slow_ms: int, share: float) -> None:
        """slow_ms: 0 is never; share: of all requests that are logged, 0 to 1. The journal says how keys are shown."""
        self.scribe.show_keys = self.journal is not None and self.journal.show_keys
        self.slow_us = slow_ms * 1000 or NEVER
        self.log_every = 1 / share if share else 0.0
        self.log_due = self.step(self.log_every) if share else NEVER
        self.restart()

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def advance(self) -> cython.bint:
        """The countdown is used up: is the batch to be logged?"""
        passed: cython.longlong = self.span - self.countdown
        self.keys_due -= passed
        self.log_due -= passed
        self.picked = 0
        if self.log_due > 0:
            return False
        while self.log_due <= 0:
            self.log_due += self.step(self.log_every)
        return True

    @cython.ccall
    @cython.exceptval(-2, check=False)
    def pick(self, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The next request of the batch of `count` whose keys are to be counted; -1 when there is none."""
        if self.keys_due > 0:
            return -1
        index: cython.Py_ssize_t = count - 1 + cython.cast(cython.Py_ssize_t, self.keys_due)
        self.keys_due += self.step(_keys_every)
        self.picked += 1
        if self.picked == 8 and self.keys_due <= 0:  # MOST_OF_A_BATCH
            self.keys_due = self.step(_keys_every)
        return index if index > 0 else 0

    @cython.ccall
    def count_key(self, key: bytes) -> None:
        """The key of a sampled request stands for all those that were not sampled."""
        self.hot.add(key, _keys_every)

    @cython.ccall
    def restart(self) -> None:
        """Count down to what is due next."""
        due: cython.double = self.keys_due if self.keys_due < self.log_due else self.log_due
        self.span = self.countdown = 1 if due < 1 else cython.cast(cython.longlong, due + 0.999)

    @cython.cfunc
    def step(self, mean: cython.double) -> cython.double:
        """The way to the next sample: of no fixed length, so that no client that repeats itself keeps in step."""
        if mean < 2:
            return mean
        self.seed = (self.seed * 1103515245 + 12345) & 0x7FFFFFFF
        return mean * (0.5 + self.seed / 2147483648.0)

    def age(self, at: float) -> None:
        """It is `at` seconds now: old samples count for less."""
        self.hot.fade(at - self.aged_at)
        self.big.forget(at)
        self.aged_at = at
