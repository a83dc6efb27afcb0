"""Keeps what a side of a pair has missed, and copies these keys from its peer, whatever was done to them.

A key is held while it is copied: no write of it begins in any worker, and those under way have ended. So what is copied
is what the key has, and the next write comes after it in both rooms. Some keys are copied together, as many as have
little enough; then nothing is copied for as long as that took, so half of the time is the clients' (carrying.py).

A side that has missed something catches up: it gets all writes again, and what it has missed before is copied. A side
that may lack anything (its process began anew, its journal was full, its peer was emptied) is emptied first, and all
keys are copied.

A key that can't be copied stays in the journal, and the side is put off: it gets all writes, and does not serve.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common import log
from hyper_proxy.common.board import Place
from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.keyname import digest
from hyper_proxy.conn_pool.asking import ask
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.rooms.again import Again
from hyper_proxy.conn_pool.rooms.carrying import Carrier
from hyper_proxy.conn_pool.rooms.empty import empty
from hyper_proxy.conn_pool.rooms.journal import Full, Journal, Missed
from hyper_proxy.conn_pool.rooms.pair import BEHIND, CATCHING_UP, DOWN, LOST, MISSED, Pair
from hyper_proxy.stats.classes import READ

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.routes.speech import Speech

GRACE_S = 0.05  # a record that is just being written is in its file by then
SIDES = ("a", "b")  # in the names of files: the servers of a pair in the order of their addresses
SETTLE_S = 1.0  # writes that began under another state have ended by then


_DOUBTFUL: dict[str, set[Missed]] = {}
"""By pair, in this process: a reload makes a new Copying, which goes on with them."""


class Copying:
    """place: on the board, of the journals' generations, words 1 and 2, and of when a side is tried again: 5 and 6."""

    def __init__(self, pair: Pair, carrier: Carrier, speech: Speech, place: Place, name: str) -> None:
        self.pair = pair
        self.carrier = carrier
        self.speech = speech
        self.overlap = carrier.overlap
        self.again = [Again(place, 5 + side) for side in range(2)]
        self.copied = 0
        self.under_way = 0  # writes whose clients have no answer yet
        rooms = pair.rooms
        self.journals = [
            Journal(rooms.folder, f"{name}.{SIDES[side]}", place, 1 + side, rooms.max_journal, rooms.sync == "yes")
            for side in range(2)
        ]
        self.doubtful = _DOUBTFUL.setdefault(name, set())
        self.clearing = False
        pair.count_missed = lambda side: len(self.journals[side].known) if pair.state(side) else 0
        for side in range(2):
            if not self.journals[side].is_empty():
                pair.miss(side)
        if not pair.can_serve(pair.active) and pair.can_serve(1 - pair.active):
            pair.start_with(1 - pair.active)

    # ---- what is missed

    def keep(self, side: int, missed: Iterable[Missed]) -> None:
        """This side has missed these."""
        if self.pair.state(side) & (LOST | CATCHING_UP) == LOST:
            return  # all will be copied
        try:
            self.journals[side].add(missed)
        except Full as error:
            self.pair.lose(side, f"what it misses can't be kept: {error}")
        else:
            self.pair.miss(side)

    def doubt(self, missed: Iterable[Missed]) -> None:
        """Two writes of these were under way at once: each room may have done another one last. Both were right."""
        self.doubtful.update(missed)

    # ---- making equal

    def is_due(self, side: int) -> bool:
        """May this side be made equal now?"""
        return self.again[side].is_due()

    def __call__(self, side: int) -> None:
        """Copy all that this side has missed. Raises BackendError."""
        self.copied = 0
        try:
            if self._equalize(side):
                self.again[side].end()
                self._tell("room.caught_up", side)
        except BackendError:
            if self.carrier.are_well():
                self.again[side].put_off()
            raise

    def _equalize(self, side: int) -> bool:
        """Is it equal now?"""
        if self.pair.state(side) & LOST and not self._all(side):
            return False
        self.copied = 0
        while True:
            missed = int(self.pair.words[MISSED[side]])
            files = self.journals[side].begin_another()
            if not self.pair.catch_up(side):
                return False
            gevent.sleep(GRACE_S)
            equal = self._copy_all(side, self.journals[side].read_all(files))
            for path in files:
                path.unlink(missing_ok=True)
            if equal and self.pair.cleaned(side, missed):
                return True
            if not equal or self.pair.state(side) & LOST:
                return False

    def _all(self, side: int) -> bool:
        """Empty it, and copy all keys; was nothing lost meanwhile?"""
        gevent.sleep(SETTLE_S)
        for path in self.journals[side].begin_another():
            path.unlink(missing_ok=True)
        empty(self.carrier.lane(side, 0), self.speech.empty(True))
        if not self.pair.catch_up(side):
            return False
        gevent.sleep(SETTLE_S)
        peer = self.pair.nodes[1 - side]
        try:
            keys = self.speech.every_key(lambda db, request: ask(self.carrier.lane(1 - side, db), request, READ))
            equal = self._copy_all(side, keys)
        except ReplyError as error:
            raise peer.error("protocol", str(error)) from None
        self._tell("room.copied", side)
        return self.pair.found(side) and equal

    def _tell(self, event: str, side: int) -> None:
        log.info(event, **self._where(side), keys=self.copied)

    def _where(self, side: int) -> dict[str, str]:
        return {"instance": self.pair.instance, "node": self.pair.nodes[side].label, "room": self.pair.names[side]}

    def _copy_all(self, side: int, keys: Iterable[Missed]) -> bool:
        """Copy what can be; the rest has been missed as before. Was it all? Raises BackendError."""
        left: list[Missed] = []
        first: BackendError | None = None
        for done, fault in self.carrier.carry(side, keys):
            if fault is None:
                self.copied += len(done)
            else:
                left += done
                first = first or fault
        if first is None:
            return True
        self.keep(side, left)
        why = {"why": str(first), "key": digest(left[0][1]), "keys": len(left), "again_s": self.again[side].put_off()}
        log.warning("room.not_equal", **self._where(side), **why)
        return False

    def tidy(self) -> None:
        """At every beat: copy what is doubtful, if both are well; of a side that is not it is kept."""
        self.overlap.rows.sweep(monotonic())
        other = 1 - self.pair.active
        state = self.pair.state(other)
        gets_all = not state & DOWN and (not state & BEHIND or state & CATCHING_UP)
        if self.doubtful and not gets_all:
            self._keep_doubtful(other)
        elif self.doubtful and not self.clearing:
            self.clearing = True
            gevent.spawn(self._clear)

    def _keep_doubtful(self, side: int) -> None:
        doubtful = list(self.doubtful)
        self.doubtful.clear()
        self.keep(side, doubtful)

    def _clear(self) -> None:
        left = set(self.doubtful)
        self.doubtful.clear()
        side = 1 - self.pair.active
        try:
            for done, fault in self.carrier.carry(side, sorted(left)):
                if fault is not None:
                    self.keep(side, done)
                left.difference_update(done)
        except BackendError:
            self.doubtful.update(left)
        finally:
            self.clearing = False

    @property
    def is_busy(self) -> bool:
        """Is something being written, or copied outside of `__call__`?"""
        return self.under_way > 0 or self.clearing

    def stop(self) -> None:
        """Another configuration serves: copy no more."""
        self.carrier.close()

    def close(self) -> None:
        """Nothing is under way any more."""
        for journal in self.journals:
            journal.close()
