"""Carries keys from one side of a pair to the other, so that the clients of the side that serves notice nothing of it.

A server does one thing at a time: while it makes a whole key ready, or takes one, it answers nobody. So it is asked
first how much each key has. What would take too long is left, and so is what the other side refuses: all the others are
carried nevertheless.

The connections are of this work alone, and their failures as well: they leave no pause before the next connection of
clients, and are no sign that a server is dead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

import gevent

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.asking import ask_all
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.rooms.overlap import Overlap, cell_of
from hyper_proxy.conn_pool.rooms.pair import DOWN, Pair
from hyper_proxy.stats.classes import IDEMPOTENT, READ

if TYPE_CHECKING:
    from hyper_proxy.config.model import Level
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.pause import Pause
    from hyper_proxy.conn_pool.rooms.journal import Missed
    from hyper_proxy.conn_pool.routes.speech import Speech

QUIET_S = 2.0  # so long the end of the writes of a key is waited for
STEP_S = 0.001
MOST_KEYS = 64  # that are held, and carried, together
BATCH_BYTES = 1 << 18  # when they have so much, the others wait for the next batch
UNKNOWN_BYTES = BATCH_BYTES // 16  # is taken for what a key has where the server does not say it
BUSY_SHARE = 0.5  # of the read deadline of clients, for which a server may be busy with one key
READ_DEADLINES = 2  # of clients, that this work waits: the guess of how long it takes may be wrong
MOST_LEFT = 1024  # a server that refuses so many refuses all


class Courier(Node):
    """A server of the pair, for this work. Its connections are counted as those of clients, and end with a switch."""

    def proved(self) -> None:
        """That is for clients to find out."""

    def _put_off(self, pause: Pause, kind: str, detail: str) -> BackendError:
        return self.error(kind, detail)


class Carrier:
    """Of one pair, to either side. level: that of the pair, for its deadlines."""

    def __init__(self, pair: Pair, level: Level, greeting: Greeting, speech: Speech, overlap: Overlap) -> None:
        self.pair = pair
        self.greeting = greeting
        self.speech = speech
        self.overlap = overlap
        self.read_ms = level.timeout.read_ms
        patient = replace(level, timeout=replace(level.timeout, read_ms=READ_DEADLINES * self.read_ms))
        self.nodes = [Courier(pair.instance, patient, node.server, node.parser, greeting, node) for node in pair.nodes]
        for courier, node in zip(self.nodes, pair.nodes, strict=True):
            courier.standings = node.standings  # nothing is copied from a process that began anew
        busy_s = speech.busy_s_per_byte
        self.most_bytes = int(BUSY_SHARE * self.read_ms / 1000 / busy_s) if busy_s else None

    def lane(self, side: int, db: int) -> Lane:
        """To a database of a side."""
        greeting: Any = self.greeting
        if hasattr(greeting, "db"):
            greeting = replace(greeting, db=db)
        return self.nodes[side].lane(greeting)

    def are_well(self) -> bool:
        """Do both sides give signs of life? Then it is for a key itself that it could not be carried."""
        heard = self.pair.heard_since
        return all(heard[side] is not None and not self.pair.state(side) & DOWN for side in range(2))

    def carry(self, side: int, keys: Iterable[Missed]) -> Iterator[tuple[list[Missed], BackendError | None]]:
        """Make them on this side what they are on the other one. Yields those that are so now; or some that could not
        be, and why. Raises BackendError: a server is not well, or refuses too many."""
        coming = iter(keys)
        batch = list(islice(coming, MOST_KEYS))
        left = 0
        while batch:
            db, group = next(groupby(batch, itemgetter(0)))
            sizes = self._sizes(self.lane(1 - side, db), [key for _, key in group])
            some = batch[: self._count_together(sizes)]
            why = self._too_big(side, sizes[0]) or self._try(side, some)
            if why is not None and len(some) > 1:
                outcomes = [([one], self._try(side, [one])) for one in some]
            else:
                outcomes = [(some, why)]
            for done, fault in outcomes:
                left += fault is not None
                yield done, fault
                if fault is not None and left > MOST_LEFT:
                    raise fault
            del batch[: len(some)]
            batch += islice(coming, MOST_KEYS - len(batch))

    def _try(self, side: int, some: Sequence[Missed]) -> BackendError | None:
        """Carry all at once; why it could not be. Raises BackendError: a server is not well."""
        try:
            self._carry(side, some[0][0], [key for _, key in some])
        except BackendError as error:
            if not self.are_well() or self.pair.active == side:
                raise
            return error
        return None

    # ---- how much

    def _sizes(self, lane: Lane, keys: Sequence[bytes]) -> list[int]:
        replies = ask_all(lane, [self.speech.size(key) for key in keys], READ)
        for reply in replies:
            if isinstance(reply, BackendError):
                raise reply
        sizes = [self.speech.size_in(reply) for reply in replies if isinstance(reply, bytes)]
        return [UNKNOWN_BYTES if size is None else size for size in sizes]

    def _count_together(self, sizes: Sequence[int]) -> int:
        """The first one, and those after it until they have enough."""
        most = BATCH_BYTES if self.most_bytes is None else min(BATCH_BYTES, self.most_bytes)
        total = 0
        for count, size in enumerate(sizes):
            total += size
            if total > most:
                return max(1, count)
        return len(sizes)

    def _too_big(self, side: int, size: int) -> BackendError | None:
        if self.most_bytes is None or size <= self.most_bytes:
            return None
        detail = (
            f"a key has {size} bytes; with more than {self.most_bytes} its server is busy for so long that clients get "
            f"errors, since timeout.read_ms is {self.read_ms}: raise that, or remove the key"
        )
        return self.nodes[1 - side].error("room", detail)

    # ---- from side to side

    def _carry(self, side: int, db: int, keys: Sequence[bytes]) -> None:
        cells = {cell_of(db, key) for key in keys}
        self._hold(cells, side)
        began = monotonic()
        try:
            questions = [self.speech.take_out(key) for key in keys]
            asked = [one for each in questions for one in each]
            replies = iter(self._answers(self.lane(1 - side, db), asked, READ))
            found = [[next(replies) for _ in each] for each in questions]
            if self.pair.active == side:  # since then it knows better than the other one
                raise self.nodes[side].error("room", "it serves by now")
            put = [self._putting(*one) for one in zip(keys, found, strict=True)]
            self._answers(self.lane(side, db), put, IDEMPOTENT)
            self.nodes[side].counts.copied += len(keys)
        finally:
            self.overlap.let_go(cells)
        gevent.sleep(monotonic() - began)  # half of the time is the clients'

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
                raise self.nodes[side].error("busy", "a key that is to be copied is being written without end")
            gevent.sleep(STEP_S)

    def close(self) -> None:
        """Another configuration serves."""
        for node in self.nodes:
            node.close()
