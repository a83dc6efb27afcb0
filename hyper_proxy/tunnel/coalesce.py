# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One question below for all who want the same key at the same time.

Who may share a question that somebody else has asked a moment ago? Who comes to a key that is not marked: had it been
written since, the mark would still stand, as long as the question is younger than Pace.fill_s (hyper_proxy/tunnel/
levels.py). Who finds the mark waits until the question under way is answered, and shares the next one: that one begins
after he came, so it sees whatever was written before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

import cython
from gevent.event import Event

from hyper_proxy.common.errors import BackendError
from hyper_proxy.stats.tier import TierStats
from hyper_proxy.tunnel.outcome import Told

Ask = Callable[[Sequence[bytes]], list[Told]]


class Unanswered(BackendError):
    """Who has asked was ended before there was an answer."""

    def __init__(self) -> None:
        super().__init__("", "", "internal", "the question to the level below was given up")


@cython.final
@cython.cclass
class Question:
    """One key, asked below. `answer` is there when it is `answered`: the item, or what was raised instead."""

    began: cython.double
    answered: cython.bint
    waited: Event | None  # of those who wait
    answer: Told | Exception

    def __init__(self, began: cython.double) -> None:
        self.began = began
        self.answered = False
        self.waited = None
        self.answer = None

    def wait(self) -> None:
        """Until it is answered."""
        if not self.answered:
            if self.waited is None:
                self.waited = Event()
            self.waited.wait()

    def get(self) -> Told:
        """Wait for the answer. Raises what whoever has asked was told."""
        self.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def tell(self, answer: Told | Exception) -> None:
        """This is the answer, for everybody."""
        self.answer = answer
        self.answered = True
        if self.waited is not None:
            self.waited.set()


class Coalesce:
    """The questions of one worker to the levels below one tier. fresh_s: how old a question may be that is shared."""

    def __init__(self, fresh_s: float, counts: TierStats) -> None:
        self.fresh_s = fresh_s
        self.counts = counts
        self.open: dict[bytes, Question] = {}

    def read(self, keys: Sequence[bytes], marked: Sequence[bool], ask: Ask) -> list[Told]:
        """The item of each key, by position; `ask` is called with those that nobody is asking for."""
        came = monotonic()
        question: Question | None
        if True in marked:
            for key, is_marked in zip(keys, marked, strict=True):
                question = self.open.get(key)
                if is_marked and question is not None and question.began < came:
                    question.wait()
        shared: dict[bytes, Question] = {}
        mine: list[bytes] = []
        began = monotonic()
        for key, is_marked in zip(keys, marked, strict=True):
            question = self.open.get(key)
            if question is not None and question.began >= (came if is_marked else came - self.fresh_s):
                shared[key] = question
                self.counts.level_shared += 1
            elif key not in shared:
                shared[key] = Question(began)
                mine.append(key)
        if mine:
            self._ask(mine, shared, ask)
        return [shared[key].get() for key in keys]

    def _ask(self, keys: list[bytes], questions: dict[bytes, Question], ask: Ask) -> None:
        self.open.update((key, questions[key]) for key in keys)
        answers: Sequence[Told | Exception] = ()
        try:
            answers = ask(keys)
        except Exception as error:  # noqa: BLE001  everyone who shares the question is told, the asker first
            answers = [error] * len(keys)
        finally:
            if len(answers) != len(keys):  # its asker was ended meanwhile
                answers = [Unanswered()] * len(keys)
            for key, answer in zip(keys, answers, strict=True):
                question = questions[key]
                if self.open.get(key) is question:
                    del self.open[key]
                question.tell(answer)
