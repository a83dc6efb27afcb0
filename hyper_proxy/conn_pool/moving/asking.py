"""The keys of a group of requests on their way to their new home: their old one is asked, one question at a time.

First for many of them together. Where that fails, for each alone, so that a key which can't be handed over fails only
the requests for itself; from then on it is asked for alone, not before a pause is over, and with more time. In a pause,
be it a key's or that of all keys between these two homes, the old home is asked whether it has the key, which costs it
no time: if it has not, the key is at the new one, or nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.conn_pool.moving.mover import Outcome
from hyper_proxy.conn_pool.moving.schedule import homes_at
from hyper_proxy.stats.classes import ADMIN, READ, WRITE

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.moving.lane import MoveLane, Turn
    from hyper_proxy.conn_pool.moving.way import OwnLane

MOST_KEYS = 64  # handed over at once: a server does nothing else meanwhile
LONG_S = 1.0  # then nothing is asked for this group any more that may take longer than other questions

Hear = Callable[["Asking", bytes], None]
"""What takes an answer: no bound method, for an Asking that held one would hold itself."""


class Asking(Gather):
    """A question under way, in the place of whoever waits for the answer. group: requests, with the keys of each.

    Asked are `batches` of keys, one after the other; errors: why keys could not be handed over, when all is asked.

    The first time nothing at the new home is replaced: should the question arrive twice, the second one late, it must
    not put an old value in the place of a new one. Where there is something it is what the old home has handed over
    before without hearing of it, or was left there by nobody knows whom; in both cases the old home is right.
    """

    def __init__(self, lane: MoveLane, group: list[tuple[Turn, list[bytes]]], stage: int) -> None:
        # Not Gather's: no greenlet waits here.
        self.lane = lane
        self.way = lane.way
        self.group = group
        self.stage = stage
        self.source, self.home = homes_at(stage)
        self.errors: dict[bytes, BackendError] = {}
        keys = dict.fromkeys(key for _, needed in group for key in needed)
        together = [key for key in keys if key not in self.way.suspects]
        self.batches = deque(together[at : at + MOST_KEYS] for at in range(0, len(together), MOST_KEYS))
        self.batches.extend([key] for key in keys if key in self.way.suspects)
        self.replace = False
        self.own: OwnLane | None = None
        self.begun_at = monotonic()
        self.hear: Hear = Asking._handed  # takes the answer to the question that is under way
        self.kind = self.detail = ""  # of the error, where the first batch is not handed over

    def ask(self) -> None:
        """For the next keys, if there are any. When a hold has begun meanwhile, anew for all of them after it."""
        if self._is_over():
            self.lane.put_back(self)
            return
        if not self.batches:
            self.lane.asked_all(self)
            return
        keys = self.batches[0]
        refusal = self.way.refusal(keys, monotonic() - self.begun_at > LONG_S)
        if refusal:
            self._look("backoff", refusal)
            return
        self.kind = self.detail = ""
        if self.way.failures(keys):  # it is given more time than others: not to a home that is not well
            self._probe(Asking._is_well)
        else:
            self._hand_over()

    def _is_over(self) -> bool:
        return self.way.schedule.ahead() != self.stage

    def _put(self, home: int, lane: Lane, question: bytes, klass: int, hear: Hear) -> None:
        """To a home, which gives its answer to `hear`; the position says which one it was."""
        self.hear = hear
        lane.submit(question, klass, self, home)

    def _probe(self, hear: Hear) -> None:
        """Ask the new home whether it is well: whatever it answers, it is."""
        self._put(self.home, self.lane.asked[self.home], self.lane.hello.probe, ADMIN, hear)

    def _hand_over(self) -> None:
        if self._is_over():
            self.lane.put_back(self)
            return
        way, keys = self.way, self.batches[0]
        failures = way.failures(keys)
        raw = way.mover.hand_over(way.nodes[self.home].server, self.lane.hello, keys, self.replace, failures)
        way.nodes[self.source].counts.hand_overs += 1
        lane = self.lane.asked[self.source]
        if failures:
            self.own = way.own_lane(self.source, self.lane.hello)
            lane = self.own.lane
        self._put(self.source, lane, raw, WRITE, Asking._handed)

    def _let_go(self) -> None:
        if self.own is not None:
            self.own.close()
            self.own = None

    def _look(self, kind: str, detail: str) -> None:
        """They are not handed over now, for this reason: are they there at all?"""
        self.kind, self.detail = kind, detail
        self._put(self.source, self.lane.asked[self.source], self.way.mover.look(self.batches[0]), READ, Asking._looked)

    def _next(self) -> None:
        self.batches.popleft()
        self.replace = False
        self.ask()

    def _split(self) -> None:
        """One by one."""
        self.batches.extendleft([key] for key in reversed(self.batches.popleft()))
        self.replace = False
        self.ask()

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        """What a home has said."""
        assert isinstance(reply, bytes)
        self._let_go()
        self.hear(self, reply)

    def _is_well(self, reply: bytes) -> None:
        """The new home, so it can be given what takes long."""
        self._hand_over()

    def _is_not_to_blame(self, reply: bytes) -> None:
        """The new home is well though the talk with it broke off."""
        self._refused(broken=True)

    def _handed(self, reply: bytes) -> None:
        """What became of the first batch."""
        outcome = self.way.mover.outcome(reply)
        if outcome in (Outcome.DONE, Outcome.NONE):
            self.way.works(self.batches[0], outcome)
            self.way.nodes[self.source].counts.handed_over += outcome is Outcome.DONE
            self._next()
        elif outcome is Outcome.OCCUPIED and not self.replace:
            self.replace = True
            self._hand_over()
        else:
            self.detail = self.way.detail(self.home, reply)
            if outcome is Outcome.UNREACHABLE:
                self._give_way()
            elif outcome is Outcome.BROKEN:  # is it for the new home, or for the key?
                self._probe(Asking._is_not_to_blame)
            else:
                self._refused(broken=False)

    def _give_way(self) -> None:
        """It is for the new home, or what lies before it: no key is handed over for a while."""
        self.way.pause.lengthen(self.detail)
        self._look("moving", self.detail)

    def _refused(self, broken: bool) -> None:
        """It is for one of the keys."""
        if len(self.batches[0]) > 1:
            self._split()
            return
        (key,) = self.batches[0]
        self.way.blame(key, self.detail, broken)
        self.kind = "moving"
        self._fail_first()

    def _looked(self, reply: bytes) -> None:
        """Whether there are any of the first batch."""
        if self.way.mover.has_none(reply):
            self.way.works(self.batches[0], Outcome.NONE)
            self._next()
        elif len(self.batches[0]) > 1:
            self._split()
        else:
            self._fail_first()

    def _fail_first(self) -> None:
        (key,) = self.batches[0]
        self.errors[key] = self.way.nodes[self.source].error(self.kind, self.detail)
        self._next()

    def fail(self, position: int, error: BackendError) -> None:
        """A home has said nothing. If it is the old one nothing more is asked: it has cost one deadline."""
        self._let_go()
        detail = self.way.silence(self.home, error)
        if position == self.home:
            self.detail = self.detail or detail
            self._give_way()
            return
        node = self.way.nodes[self.source]
        silent = BackendError(node.instance, node.where, error.kind, detail)
        if error.kind == "timeout" and self.hear is Asking._handed:  # one of them may be too large
            for key in self.batches[0]:
                self.way.suspect(key, detail)
        for keys in self.batches:
            self.errors.update(dict.fromkeys(keys, silent))
        self.batches.clear()
        self.ask()
