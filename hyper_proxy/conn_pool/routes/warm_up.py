# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""warm_up: a cold cache serves; what a read misses there is fetched from the warm one, added, and read once more.

Writes go to the cold one only, but what removes keys goes to both, or they would come back. What is added has the time
of living that it had, and replaces nothing. A key that is deleted while it is fetched may come back, as with any cache
that is filled from another one.
"""

from __future__ import annotations

import cython

from hyper_proxy.common.errors import BackendError
from hyper_proxy.stats.classes import IDEMPOTENT, READ

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import JointLeg, Leg, RouteLane

COLD = 0
WARM = 1


@cython.cclass
class WarmUpLane(RouteLane):
    """The lanes of the cold child and of the warm one."""

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Clients wait for the cold one; the warm one is left alone when it is full."""
        lane: Lane = self.lanes[COLD]
        return lane.is_full(klass)

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        lane: Lane = self.lanes[COLD]
        if klass == READ:
            lane.submit(raw, klass, WarmUpLeg(raw, klass, gather, position, self), 0)
            return
        removal: bytes | None = self.setting.speech.removal(bytes(raw))
        if removal is None:
            lane.submit(raw, klass, gather, position)
            return
        leg: RemovalLeg = RemovalLeg(raw, klass, gather, position, self)
        warm: Lane = self.lanes[WARM]
        if warm.is_full(klass):
            leg.fail(WARM, warm.node.busy())
        else:
            warm.submit(removal, klass, leg, WARM)
        lane.submit(raw, klass, leg, COLD)


@cython.cclass
class WarmUpLeg(Leg):
    """A read of the cold one."""

    def __init__(
        self, raw: bytes | bytearray, klass: int, gather: Gather | None, position: int, route: WarmUpLane
    ) -> None:
        super().__init__(raw, klass, gather, position)
        self.route = route

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        warm: Lane = self.route.lanes[WARM]
        missed = self.route.setting.speech.keys_missed(bytes(self.raw), cython.cast(bytes, reply))
        if not missed or warm.is_full(READ):
            self.answer(cython.cast(bytes, reply))
        else:
            Fetch(self, cython.cast(bytes, reply), missed).begin()

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        self.give_up(error)


@cython.cclass
class RemovalLeg(JointLeg):
    """A removal at both. The answer is that of the cold one when both have answered, or that of the warm one where only
    that had something; one that fails has nothing that anybody would hear of."""

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        self.replies[position] = reply
        cold, warm = self.replies
        if cold is None or warm is None:
            return
        speech = self.route.setting.speech
        if isinstance(cold, BackendError):
            self.give_up(cold)
        elif isinstance(warm, BackendError) or speech.is_error(warm) or not speech.found_none(cold):
            self.answer(cold)
        else:
            self.answer(warm)

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        self.deliver(position, error)


class Fetch(Gather):
    """What the warm one has of the keys that a reply lacks; then the reply, or the one of a second read."""

    def __init__(self, leg: WarmUpLeg, reply: bytes, keys: list[bytes]) -> None:  # not Gather's: no greenlet waits here
        self.leg = leg
        self.reply = reply
        self.keys = keys
        self.wanted: list[tuple[int, bytes]] = []
        self.found: list[bytes | None] = []
        self.awaited = 0

    def begin(self) -> None:
        """Ask the warm one."""
        speech = self.leg.route.setting.speech
        self.wanted = [(index, request) for index, key in enumerate(self.keys) for request in speech.take_out(key)]
        self.found = [None] * len(self.wanted)
        self.awaited = len(self.wanted)
        for position, (_, request) in enumerate(self.wanted):
            self.leg.route.lanes[WARM].submit(request, READ, self, position)

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        self.found[position] = reply if isinstance(reply, bytes) else None
        self.awaited -= 1
        if not self.awaited:
            self._add()

    def fail(self, position: int, error: BackendError) -> None:
        """Counted by its node; a warm one that is not there has nothing."""
        self.deliver(position, error)

    def _add(self) -> None:
        """Add to the cold one what was found, then read there again: on one connection, so in this order."""
        leg = self.leg
        added = False
        for index, key in enumerate(self.keys):
            replies = [reply for (of, _), reply in zip(self.wanted, self.found, strict=True) if of == index]
            request = None
            if None not in replies:
                request = leg.route.setting.speech.put_in(key, [reply for reply in replies if reply is not None])
            if request is not None:
                added = True
                leg.route.lanes[COLD].node.counts.warmed += 1
                leg.route.lanes[COLD].submit(request, IDEMPOTENT, None, 0)
        if added:
            leg.route.lanes[COLD].submit(leg.raw, leg.klass, leg.gather, leg.position)
        else:
            leg.answer(self.reply)
