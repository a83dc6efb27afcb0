"""The map of the fractal: the same call for several parts at once, each in a greenlet of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import gevent

from hyper_proxy.common import witness

P = TypeVar("P")
R = TypeVar("R")


def each(call: Callable[[P], R], parts: Sequence[P]) -> list[R]:
    """call(part) of every part, by position; the last one in the caller's own greenlet. What a call raises is raised
    when all have ended, so no part goes on unseen. Of the servers asked, the last to answer is the caller's, too."""
    if len(parts) <= 1:
        return [call(part) for part in parts]
    told: list[str] = []
    outcomes = [_Outcome(call, part, told) for part in parts]
    others = [gevent.spawn(outcome.run) for outcome in outcomes[:-1]]
    outcomes[-1].run()
    if others:
        gevent.joinall(others)
    if told:
        witness.note(told[-1])
    return [outcome.get() for outcome in outcomes]


class _Outcome(Generic[P, R]):
    """One call, and what became of it."""

    def __init__(self, call: Callable[[P], R], part: P, told: list[str]) -> None:
        self.call = call
        self.part = part
        self.told = told
        self.result: list[R] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result.append(self.call(self.part))
        except Exception as error:  # noqa: BLE001  raised again by `get`, in the greenlet of the caller of `each`
            self.error = error
        if label := witness.told():
            self.told.append(label)

    def get(self) -> R:
        if self.error is not None:
            raise self.error
        return self.result[0]
