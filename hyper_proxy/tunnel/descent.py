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
from gevent import get_hub

from hyper_proxy.common import faults, witness
from hyper_proxy.common.crew import CREW
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

    from hyper_proxy.tunnel.tier import Tier

ARRAY = cython.declare(cython.int, 42)  # "*"
MINUS = cython.declare(cython.int, 45)  # an error begins with it, and the size of nil
NIL = cython.declare(cython.int, 95)  # "_"
STRING = cython.declare(cython.int, 36)  # "$"
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
    misses: is a miss of the first level asked below? A mark always is.
    crowds: of all batches over the same levels, by request and nil.
    deadline_s: how long an optional first level is waited for; 0: as long as any server.
    counts: of the first level.
    complete_below(raw, reply): the whole reply to that request, from below where it must; raises BackendError. It may
    block.

    The slot of a read holds the request until the first level has answered.
    """

    nil: bytes
    nothing: bytes
    misses: cython.bint
    crowds: dict
    deadline_s: cython.double
    counts: TierStats
    complete_below: Callable[[Any, Any], bytes]
    who: Any  # for the report of a fault

    def __init__(self, who: Any, complete_below: Any) -> None:
        super().__init__()
        self.who = who
        self.nil = self.nothing = b""
        self.misses = True
        self.crowds = {}
        self.deadline_s = 0.0
        self.counts = TierStats()
        self.complete_below = complete_below

    def begin_at(self, tier: Tier, crowds: dict, nil: bytes, nothing: bytes) -> None:
        """From now on this is the first level."""
        self.nil = nil
        self.nothing = nothing
        self.misses = tier.level.on_miss == "next"
        self.crowds = crowds
        self.deadline_s = tier.deadline_s
        self.counts = tier.counts

    @cython.ccall
    def read(self, lane: Lane, raw: bytes | bytearray, klass: cython.Py_ssize_t) -> None:
        """Send a read to the first level."""
        error = self.room(lane, klass) if self.deadline_s == 0 else None
        position: cython.Py_ssize_t = self.expect()
        self.slots[position] = raw
        if error is not None:
            self.fail(position, error)
        elif self.deadline_s:
            send_by(self, position, lane, raw, klass, self.deadline_s)
        else:
            lane.submit(raw, klass, self, position)

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        """A reply of the first level, or what came from below instead."""
        raw = self.slots[position]
        if raw is None or (isinstance(reply, bytes) and self.is_whole(reply)):
            Batch.deliver(self, position, reply)
            return
        self.slots[position] = None  # what comes from below is the last word
        if reply == self.nothing:
            self.counts.negative_hits += 1
            Batch.deliver(self, position, self.nil)
        elif reply == self.nil:
            self.join(position, raw)
        else:
            CREW.start(self._descend, [self, position], reply, raw)

    @cython.cfunc
    def join(self, position: cython.Py_ssize_t, raw: Any) -> None:
        """A request for one key, which the first level does not have: go down with others, or as the first of them."""
        name: tuple = (bytes(raw), self.nil)
        at: cython.double = now()
        crowd: Crowd | None = self.crowds.get(name)
        if crowd is None or crowd.began < at - JOIN_S:
            crowd = self.crowds[name] = Crowd(at)
            CREW.start(self._descend_with, crowd, name)
        else:
            self.counts.level_misses += 1
            self.counts.level_shared += 1
        crowd.members.append(self)
        crowd.members.append(position)

    def _descend_with(self, crowd: Crowd, name: tuple) -> None:
        members = crowd.members
        try:
            self._descend(members, self.nil, name[0])
        finally:
            if self.crowds.get(name) is crowd:
                del self.crowds[name]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, reply: bytes) -> cython.bint:
        """Has it a value of a client's for every key? What is no answer to GET or MGET is whole, too: the client gets
        it as it is."""
        p: cython.p_uchar = reply
        n: cython.Py_ssize_t = len(reply)
        i: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        if p[0] == MINUS:
            return False
        if p[0] == ARRAY:
            while i < n and p[i] != 10:
                i += 1
            i += 1
        while i < n:
            if p[i] == NIL or (p[i] == STRING and p[i + 1] == MINUS):
                if self.misses:
                    return False
                while i < n and p[i] != 10:
                    i += 1
                i += 1
                continue
            if p[i] != STRING:
                return True
            size = 0
            i += 1
            while i < n and p[i] != 13:
                size = size * 10 + (p[i] - 48)
                i += 1
            i += 2
            if i < n and p[i] == 0 and is_sign(reply, i):
                return False
            i += size + 2
        return True

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        """The first level has failed: it has nothing, then."""
        if self.slots[position] is not None:
            self.deliver(position, error)
        else:
            Batch.fail(self, position, error)

    def _descend(self, members: list, reply: Any, raw: Any) -> None:
        """members: descent and position of each who waits for this; others may join while it is under way."""
        witness.forget()
        try:
            whole: Any = self.complete_below(raw, reply)
        except BackendError as error:
            whole = error
        except Exception:  # noqa: BLE001  the slot must be filled, or the client would wait for ever
            faults.show(self.who)
            whole = BackendError("", "", "internal", "the levels below could not be asked")
        # In the event loop, as all replies come: whoever fills the last slot switches to the client, and not back.
        get_hub().loop.run_callback(_fill, members, whole, witness.told())


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def is_sign(reply: bytes, start: cython.Py_ssize_t) -> cython.bint:
    """Does a value begin there that is none of a client's?"""
    p: cython.p_uchar = reply
    wanted: bytes = SIGN
    sign: cython.p_uchar = wanted
    size: cython.Py_ssize_t = len(wanted)
    i: cython.Py_ssize_t = 0
    if len(reply) - start < size:
        return False
    while i < size:
        if p[start + i] != sign[i]:
            return False
        i += 1
    return True


def _fill(members: list, whole: bytes | BackendError, server: str) -> None:
    for index in range(0, len(members), 2):
        members[index].note_wait(server, 0.0, 0.0, 0.0)
        if isinstance(whole, BackendError):
            Batch.fail(members[index], members[index + 1], whole)
        else:
            Batch.deliver(members[index], members[index + 1], whole)
