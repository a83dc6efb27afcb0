"""When a side is tried again that could not be made equal: ever more rarely, in all workers together."""

from __future__ import annotations

from time import monotonic

from hyper_proxy.common.board import Place

FIRST_S = 1
MOST_S = 60
_TIMES_BITS = 6
"""The lowest bits of the word: how often it was put off. Above them: until when, in milliseconds of CLOCK_MONOTONIC."""
_MOST_TIMES = (1 << _TIMES_BITS) - 1


class Again:
    """Of one side. word: its index in the place on the board; where that is 0, the side was not put off."""

    def __init__(self, place: Place, word: int) -> None:
        self.words = place.words
        self.word = word

    def is_due(self) -> bool:
        """May it be tried?"""
        left_ms = (int(self.words[self.word]) >> _TIMES_BITS) - _now_ms()
        return left_ms <= 0 or left_ms > MOST_S * 1000  # it was put off before the machine was started

    def put_off(self) -> int:
        """Twice as long as the last time; for how many seconds?"""
        times = int(self.words[self.word]) & _MOST_TIMES
        seconds = min(MOST_S, FIRST_S << times)
        self.words[self.word] = (_now_ms() + seconds * 1000) << _TIMES_BITS | min(times + 1, _MOST_TIMES)
        return seconds

    def end(self) -> None:
        """It is equal."""
        self.words[self.word] = 0


def _now_ms() -> int:
    return int(monotonic() * 1000)
