"""Questions to servers that are worth waiting for only so long: an optional level's.

Between the connection, which all clients share, and the batch that asks stands a slot of its own for each question.
What comes in time is passed on; at the deadline the batch is told that it is late, and the answer, whenever it comes,
ends in the slot, with nobody behind it. The connection keeps its order, and whoever else asked there has what is his.
"""

from __future__ import annotations

from typing import Any

from gevent import get_hub

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.conn_pool.lane import Lane


class Slot(Gather):
    """One question on its way for `batch`, which has opened a slot at `position` for it."""

    def __init__(self, batch: Gather, position: int, lane: Lane, seconds: float) -> None:
        super().__init__()
        self.batch: Gather | None = batch
        self.position = position
        self.lane = lane
        self.seconds = seconds
        self.timer: Any = get_hub().loop.timer(seconds)
        self.timer.start(self._be_late, update=True)  # the loop's own clock stands still while it is busy

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        batch = self._close()
        if batch is not None:
            batch.deliver(self.position, reply)

    def fail(self, position: int, error: BackendError) -> None:
        batch = self._close()
        if batch is not None:
            batch.fail(self.position, error)

    def _be_late(self) -> None:
        batch = self._close()
        if batch is not None:
            batch.fail(self.position, late(self.lane, self.seconds))

    def _close(self) -> Gather | None:
        """Once; after that nothing goes through."""
        batch, self.batch = self.batch, None
        if batch is not None:
            self.timer.close()
        return batch


def send_by(
    batch: Gather, position: int, lane: Lane, raw: bytes | bytearray, klass: int, seconds: float
) -> None:
    """Send for an open slot, which is filled after so many seconds at the latest. A full lane is late at once."""
    if lane.is_full(klass):
        batch.fail(position, late(lane, seconds))
    else:
        lane.submit(raw, klass, Slot(batch, position, lane, seconds), 0)


def late(lane: Lane, seconds: float) -> BackendError:
    """The error of who is not waited for any longer; the server is not held to be down for it."""
    error: BackendError = lane.node.error("late", f"passed by after {round(seconds * 1000)} ms (deadline_ms)")
    return error
