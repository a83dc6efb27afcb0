# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A batch over levels whose first one speaks the client's protocol: hits travel as they came, misses go down.

A read is sent to the first level as with one level only. The reply of a part that lacks nothing fills its slot at once,
in the event loop. Another one keeps its slot open while a greenlet of its own asks the levels below; slow siblings are
not waited for.

Many who miss the same key at the same moment are a crowd: one greenlet goes down for all of them. Those who come within
JOIN_S after the first one join it. What it brings may come from a question that is older by Pace.fill_s than the crowd;
a write before all that, which may take Pace.slow_s, would still have its mark, and who finds a mark joins nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from gevent import get_hub, spawn

from hyper_proxy.common import faults
from hyper_proxy.common.errors import BackendError
from hyper_proxy.stats.tier import TierStats
from hyper_proxy.storage.cache import SIGN
from hyper_proxy.tunnel.deadline import send_by

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.tunnel.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

ERROR = 45  # "-", with which errors of redis begin
JOIN_S = cython.declare(cython.double, 0.25)


@cython.final
@cython.cclass
class Crowd:
    """Those who wait for the whole reply to the same request. began: when the first one missed."""

    began: cython.double
    members: list  # descent, position, descent, position ...

    def __init__(self, began: cython.double) -> None:
        self.began = began
        self.members = []


@cython.cclass
class Descent(Batch):
    """nil: how the client's protocol says nothing; a reply with it, with a mark, or that is an error, may lack a value.
    nothing: how the first level says that the levels below have nothing.
    lacking: nil, where a miss of the first level is asked below; else the sign of a mark, which always is.
    crowds: of all batches over the same levels, by request and nil.
    deadline_s: how long an optional first level is waited for; 0: as long as any server.
    counts: of the first level.
    complete_below(raw, shard, reply): the whole reply to that request, from below where it must; raises BackendError.
    It may block.
    """

    nil: bytes
    nothing: bytes
    lacking: bytes
    crowds: dict
    deadline_s: cython.double
    counts: TierStats
    complete_below: Callable[[Any, int, Any], bytes]
    reads: dict  # slot -> (request, shard), of reads that are under way
    who: Any  # for the report of a fault

    def __init__(self, who: Any, complete_below: Any) -> None:
        super().__init__()
        self.who = who
        self.nil = self.nothing = self.lacking = b""
        self.crowds = {}
        self.deadline_s = 0.0
        self.counts = TierStats()
        self.complete_below = complete_below
        self.reads = {}

    @cython.ccall
    def read(self, lane: Lane, raw: bytes | bytearray, klass: cython.Py_ssize_t, shard: cython.Py_ssize_t) -> None:
        """Send a read to the first level."""
        self.reads[len(self.slots)] = (raw, shard)
        if self.deadline_s:
            send_by(self, lane, raw, klass, self.deadline_s)
        else:
            self.send(lane, raw, klass)

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        """A reply of the first level, or what came from below instead."""
        asked: tuple | None = self.reads.pop(position, None) if self.reads else None
        if asked is None or (isinstance(reply, bytes) and self.is_whole(reply)):
            Batch.deliver(self, position, reply)
        elif reply == self.nothing:
            self.counts.negative_hits += 1
            Batch.deliver(self, position, self.nil)
        elif reply == self.nil:
            self.join(position, asked)
        else:
            spawn(self._descend, [self, position], reply, *asked)

    @cython.cfunc
    def join(self, position: cython.Py_ssize_t, asked: tuple) -> None:
        """A request for one key, which the first level does not have: go down with others, or as the first of them."""
        name: tuple = (bytes(asked[0]), self.nil)
        at: cython.double = now()
        crowd: Crowd | None = self.crowds.get(name)
        if crowd is None or crowd.began < at - JOIN_S:
            crowd = self.crowds[name] = Crowd(at)
            spawn(self._descend_with, crowd, name, asked)
        else:
            self.counts.level_misses += 1
            self.counts.level_shared += 1
        crowd.members.append(self)
        crowd.members.append(position)

    def _descend_with(self, crowd: Crowd, name: tuple, asked: tuple) -> None:
        members = crowd.members
        try:
            self._descend(members, self.nil, *asked)
        finally:
            if self.crowds.get(name) is crowd:
                del self.crowds[name]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, reply: bytes) -> cython.bint:
        """Values that happen to contain these bytes are looked at more closely, that is all."""
        return reply[0] != ERROR and self.lacking not in reply and SIGN not in reply

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        """The first level has failed: it has nothing, then."""
        if position in self.reads:
            self.deliver(position, error)
        else:
            Batch.fail(self, position, error)

    def _descend(self, members: list, reply: Any, raw: Any, shard: int) -> None:
        """members: descent and position of each who waits for this; others may join while it is under way."""
        try:
            whole: Any = self.complete_below(raw, shard, reply)
        except BackendError as error:
            whole = error
        except Exception:  # noqa: BLE001  the slot must be filled, or the client would wait for ever
            faults.show(self.who)
            whole = BackendError("", "", "internal", "the levels below could not be asked")
        # In the event loop, as all replies come: whoever fills the last slot switches to the client, and not back.
        get_hub().loop.run_callback(_fill, members, whole)


def _fill(members: list, whole: bytes | BackendError) -> None:
    for index in range(0, len(members), 2):
        if isinstance(whole, BackendError):
            Batch.fail(members[index], members[index + 1], whole)
        else:
            Batch.deliver(members[index], members[index + 1], whole)
