# cython: language_level=3, annotation_typing=False
"""How many reads of a worker are under way to the last level at once; the others wait for their turn.

Caches that have lost everything would bury it otherwise.
"""

from __future__ import annotations

from types import TracebackType

from gevent.lock import Semaphore

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Level, WriteBack

USUAL = 16  # of a level without connections of its own


class Gate:
    """`with gate:` around a read. Raises BackendError (queue) when its turn does not come in time, which is counted."""

    def __init__(self, instance: str, most: int, wait_ms: int, before: Gate | None = None) -> None:
        self.instance = instance
        self.most = most
        self.wait_ms = wait_ms
        self.turns = Semaphore(most)
        self.waiting = 0
        self.refused: int = before.refused if before else 0

    @classmethod
    def before(cls, instance: str, write_back: WriteBack, last: Level, previous: Gate | None = None) -> Gate:
        """The gate before the last level. Without a number there are as many turns as it has connections.

        previous: that of the configuration before; its count goes on.
        """
        most = write_back.max_below or max(USUAL, last.usual_connections)
        return cls(instance, most, write_back.below_wait_ms, previous)

    @property
    def passing(self) -> int:
        """Reads that are under way."""
        return self.most - int(self.turns.counter)

    def __enter__(self) -> None:
        self.waiting += 1
        try:
            admitted = self.turns.acquire(timeout=self.wait_ms / 1000)
        finally:
            self.waiting -= 1
        if not admitted:
            self.refused += 1
            told = f"{self.most} reads are under way to the last level, and it was not this one's turn"
            raise BackendError(self.instance, "", "queue", f"{told} for {self.wait_ms} ms (write_back.max_below)")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.turns.release()
