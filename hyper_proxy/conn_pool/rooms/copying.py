"""Keeps what a side of a pair has missed, and copies these keys from its peer, whatever was done to them.

A key is held while it is copied: no write of it begins in any worker, and those under way have ended. So what is copied
is what the key has, and the next write comes after it in both rooms. Some keys are copied together, as many as have
little enough; then nothing is copied for as long as that took, so half of the time is the clients'.

A side that has missed something catches up: it gets all writes again, and what it has missed before is copied. A side
that may lack anything (its process began anew, its journal was full, its peer was emptied) is emptied first, and all
keys are copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

import gevent

from hyper_proxy.common import log
from hyper_proxy.common.board import Place
from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.asking import ask, ask_all
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.rooms.journal import Full, Journal, Missed
from hyper_proxy.conn_pool.rooms.overlap import Overlap, cell_of
from hyper_proxy.conn_pool.rooms.pair import BEHIND, CATCHING_UP, DOWN, LOST, MISSED, Pair
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.speech import Speech

GRACE_S = 0.05  # a record that is just being written is in its file by then
QUIET_S = 2.0  # so long the end of the writes of a key is waited for
STEP_S = 0.001
MOST_KEYS = 64  # that are held, and copied, together
MOST_READ = 16  # of them that are asked for at once: nobody knows before how much they have
BATCH_BYTES = 1 << 18  # when they have so much, the others wait for the next batch
SIDES = ("a", "b")  # in the names of files: the servers of a pair in the order of their addresses
SETTLE_S = 1.0  # writes that began under another state have ended by then


_DOUBTFUL: dict[str, set[Missed]] = {}
"""By pair, in this process: a reload makes a new Copying, which goes on with them."""


class Copying:
    """place: of the journals' generations on the board: words 1 and 2."""

    def __init__(
        self, pair: Pair, greeting: Greeting, speech: Speech, place: Place, name: str, overlap: Overlap
    ) -> None:
        self.pair = pair
        self.greeting = greeting
        self.speech = speech
        self.overlap = overlap
        rooms = pair.rooms
        self.journals = [
            Journal(rooms.folder, f"{name}.{SIDES[side]}", place, 1 + side, rooms.max_journal, rooms.sync == "yes")
            for side in range(2)
        ]
        self.doubtful = _DOUBTFUL.setdefault(name, set())
        self.clearing = False
        pair.count_missed = lambda side: len(self.journals[side].known)
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

    def __call__(self, side: int) -> None:
        """Copy all that this side has missed. Raises BackendError."""
        if self.pair.state(side) & LOST and not self._all(side):
            return
        copied = 0
        while True:
            missed = int(self.pair.words[MISSED[side]])
            files = self.journals[side].begin_another()
            if not self.pair.catch_up(side):
                return
            gevent.sleep(GRACE_S)
            records = dict.fromkeys(record for path in files for record in self.journals[side].read(path))
            copied += self._copy_all(side, records)
            for path in files:
                path.unlink(missing_ok=True)
            if self.pair.cleaned(side, missed):
                break
            if self.pair.state(side) & LOST:
                return
        self._tell("room.caught_up", side, copied)

    def _all(self, side: int) -> bool:
        """Empty it, and copy all keys; was nothing lost meanwhile?"""
        gevent.sleep(SETTLE_S)
        for path in self.journals[side].begin_another():
            path.unlink(missing_ok=True)
        lane = self._lane(side, 0)
        reply = ask(lane, self.speech.empty(True), ADMIN)
        if b"OK" not in reply[:3]:
            raise lane.node.error("protocol", f"it was not emptied: {reply[:80]!r}")
        if not self.pair.catch_up(side):
            return False
        gevent.sleep(SETTLE_S)
        peer = self.pair.nodes[1 - side]
        try:
            keys = self.speech.every_key(lambda db, request: ask(self._lane(1 - side, db), request, READ))
            count = self._copy_all(side, keys)
        except ReplyError as error:
            raise peer.error("protocol", str(error)) from None
        self._tell("room.copied", side, count)
        return self.pair.found(side)

    def _tell(self, event: str, side: int, keys: int) -> None:
        node = self.pair.nodes[side].label
        log.info(event, instance=self.pair.instance, node=node, room=self.pair.names[side], keys=keys)

    def _copy_all(self, side: int, keys: Iterable[Missed]) -> int:
        """How many there were. Raises BackendError."""
        return sum(len(done) for done in self._copy_some(side, keys))

    def _copy_some(self, side: int, keys: Iterable[Missed]) -> Iterator[list[Missed]]:
        """Copy all; those that were copied just now. Raises BackendError: of a key that could not be copied alone."""
        coming = iter(keys)
        batch = list(islice(coming, MOST_KEYS))
        while batch:
            db, group = next(groupby(batch, itemgetter(0)))
            together = [key for _, key in group]
            try:
                count = self._copy(side, db, together)
            except BackendError:
                if len(together) == 1:
                    raise
                for key in together:
                    self._copy(side, db, [key])
                    yield [(db, key)]
                del batch[: len(together)]
            else:
                yield batch[:count]
                del batch[:count]
            batch += islice(coming, MOST_KEYS - len(batch))

    def _copy(self, side: int, db: int, keys: Sequence[bytes]) -> int:
        """The first ones, all at once; how many? Raises BackendError; then they are still to be done."""
        cells = {cell_of(db, key) for key in keys}
        self._hold(cells, side)
        began = monotonic()
        try:
            found = self._take_out(self._lane(1 - side, db), keys)
            lane = self._lane(side, db)
            self._answers(lane, [self._putting(*one) for one in zip(keys, found, strict=False)], IDEMPOTENT)
            lane.node.counts.copied += len(found)
        finally:
            self.overlap.let_go(cells)
        gevent.sleep(monotonic() - began)
        return len(found)

    def _take_out(self, lane: Lane, keys: Sequence[bytes]) -> list[list[bytes]]:
        """The answers of the first ones, until they are BATCH_BYTES. Raises BackendError."""
        found: list[list[bytes]] = []
        size = 0
        while len(found) < len(keys):
            more = min(MOST_READ, max(1, len(found)))
            questions = [self.speech.take_out(key) for key in keys[len(found) : len(found) + more]]
            replies = iter(self._answers(lane, [one for each in questions for one in each], READ))
            for each in questions:
                found.append([next(replies) for _ in each])
                size += sum(map(len, found[-1]))
                if size >= BATCH_BYTES:
                    return found  # what was read beyond that is read again
        return found

    def _putting(self, key: bytes, replies: Sequence[bytes]) -> bytes:
        return self.speech.put_in(key, replies, replace=True) or self.speech.remove(key)

    def _answers(self, lane: Lane, requests: Sequence[bytes], klass: int) -> list[bytes]:
        return [self._good(lane, reply) for reply in ask_all(lane, requests, klass)]

    def _good(self, lane: Lane, reply: bytes | BackendError) -> bytes:
        if isinstance(reply, BackendError):
            raise reply
        if self.speech.is_error(reply):
            error: BackendError = lane.node.error("protocol", f"a key could not be copied: {reply[:80]!r}")
            raise error
        return reply

    def _hold(self, cells: Collection[int], side: int) -> None:
        """Wait until nobody writes there, and nobody may. Raises BackendError."""
        until = monotonic() + QUIET_S
        held = False
        while True:
            held = held or self.overlap.hold(cells)
            if held and self.overlap.is_quiet(cells):
                return
            if monotonic() > until:
                if held:
                    self.overlap.let_go(cells)
                raise self.pair.nodes[side].error("busy", "a key that is to be copied is being written without end")
            gevent.sleep(STEP_S)

    def _lane(self, side: int, db: int) -> Lane:
        greeting: Any = self.greeting
        if hasattr(greeting, "db"):
            greeting = replace(greeting, db=db)
        return self.pair.nodes[side].lane(greeting)

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
        try:
            for done in self._copy_some(1 - self.pair.active, sorted(left)):
                left.difference_update(done)
        except BackendError:
            self.doubtful.update(left)
        finally:
            self.clearing = False

    def close(self) -> None:
        """Another configuration serves."""
        for journal in self.journals:
            journal.close()
