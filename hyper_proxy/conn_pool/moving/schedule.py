"""When keys begin to move, and when they go back: the same moments in every process that serves them.

Around each of these moments there is a hold, in which nothing is sent: before it everything that was sent under the old
rule is answered or given up, and clocks may differ by AFTER_S until the last process has gone over to the new rule.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Level, Route, Timeout

AFTER_S = 0.5
LEAST_BEFORE_S = 0.5
LEAD_S = 5.0  # a running fleet needs the moment so long before the hold, to agree on it
OLD = 0
NEW = 1


class Schedule:
    """moments: unix seconds, rising: begins, and back where it is set. before_s: how long the hold before one is.

    A clock that is set back does not take the keys back.
    """

    def __init__(self, moments: Sequence[float], timeout: Timeout) -> None:
        self.moments = list(moments)
        self.reached = 0  # the highest stage that requests were served in
        # A request may wait for its key and then for its answer.
        longest_ms = 2 * (timeout.connect_ms + timeout.queue_ms + timeout.read_ms)
        self.before_s = max(LEAST_BEFORE_S, longest_ms / 1000)

    @staticmethod
    def of(level: Level) -> Schedule | None:
        """That of a level whose keys move; None for any other."""
        return Schedule(moments_of(level.route), level.timeout) if is_move(level.route) and level.route else None

    def stage(self) -> int | None:
        """How many of the moments are over: 0 all is at the old home, 1 keys go to the new one, 2 they come back.

        None: in a hold.
        """
        at = time.time()
        for number in range(self.reached, len(self.moments)):
            moment = self.moments[number]
            if at < moment - self.before_s:
                return number
            if at < moment + AFTER_S:
                return None
            self.reached = number + 1
        return self.reached

    def hold_left(self) -> float:
        """Seconds until the hold is over, 0 outside of one."""
        at = time.time()
        to_come = self.moments[self.reached :]
        ends = [moment + AFTER_S for moment in to_come if moment - self.before_s <= at < moment + AFTER_S]
        return max(ends) - at if ends else 0.0

    def moment_left(self) -> float:
        """In a hold: seconds until its moment, or since then as a negative number."""
        return self.hold_left() - AFTER_S

    def next_hold(self) -> float | None:
        """Seconds until the next hold begins; None when there is none to come."""
        at = time.time()
        return min((m - self.before_s - at for m in self.moments if m - self.before_s > at), default=None)

    def ahead(self) -> int:
        """The stage outside of a hold; in a hold, the one behind it."""
        at = time.time()
        return max(self.reached, sum(at >= moment - self.before_s for moment in self.moments))

    def check_begin(self, known: Schedule | None) -> None:
        """Raises HyperProxyError for a moment that a running fleet hears of too late, one worker after the other."""
        before = known.moments if known else []
        if known and before == self.moments[: len(before)]:
            self.reached = known.reached
        for moment in self.moments:
            left = moment - self.before_s - time.time()
            if moment not in before and left < LEAD_S:
                least = self.before_s + LEAD_S
                raise HyperProxyError(
                    f"`begins`, or `back`, must be at least {least:.1f} seconds ahead when a running fleet loads the "
                    "file, so that all its workers know it in time"
                )


def homes_at(stage: int) -> tuple[int, int]:
    """Who is asked to hand keys over, and who serves them, at a stage that is not 0."""
    return (OLD, NEW) if stage % 2 else (NEW, OLD)


def is_move(route: Route | None) -> bool:
    """Do the keys of a level with this route move?"""
    return route is not None and route.kind == "move"


def moments_of(route: Route | None) -> list[float]:
    """Of a route `move`."""
    assert route is not None
    return [moment for moment in (route.option("begins"), route.option("back")) if moment]
