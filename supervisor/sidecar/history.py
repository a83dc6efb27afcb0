"""The last 15 minutes: a point for each owner every few seconds, and whole samples of the last minute.

A point is what a plot shows: it is made once, of two samples that follow each other. The tables of the page compare
now with a minute ago, for which the whole samples are kept. Both are bounded: memory does not grow with age.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from supervisor.sidecar.samples import FLEET, Owner, Pace, Sample, between

EVERY_S = 5.0
SPAN_S = 900.0
WINDOW_S = 60.0
POINTS = int(SPAN_S / EVERY_S)
# Owners beyond so many have rates of the last minute, but no plot: 500 of them take some 15 MB.
PLOTTED = 500
# A node whose failures have ended is said to have recovered after so long.
CALM_S = 15.0
EVENTS_KEPT = 100


@dataclass(frozen=True, slots=True)
class Point:
    """Rates a second and percentiles in microseconds of the seconds that end at `at` (since 1970)."""

    at: float
    requests: float
    trouble: float
    p50_us: int
    p99_us: int


@dataclass(slots=True)
class _Trouble:
    began: float  # not earlier; `since`: and surely by then
    since: float
    last: float
    kinds: str


class History:
    """Fed by the sampler (see `add`); the page asks for `pace`, `latest`, `points` and `since`."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=int(WINDOW_S / EVERY_S) + 1)
        self._points: dict[Owner, deque[Point]] = {}
        self._troubled: dict[Owner, _Trouble] = {}
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS_KEPT)

    def add(self, sample: Sample) -> None:
        """Takes the newest sample."""
        if self._samples:
            self._plot(self._samples[-1], sample)
        self._samples.append(sample)
        for owner in self._points.keys() - sample.tallies.keys():
            del self._points[owner]
        for owner in self._troubled.keys() - sample.tallies.keys():
            del self._troubled[owner]

    def pace(self, now: Sample, owner: Owner) -> Pace:
        """What an owner did in the last minute, as far as that is known."""
        fresh = [sample for sample in self._samples if now.at - sample.at <= WINDOW_S + EVERY_S and sample.at < now.at]
        return between(fresh[0], now, owner) if fresh else Pace()

    def latest(self, now: Sample, owner: Owner) -> Pace:
        """What it did in the last seconds: from the last sample but one until now."""
        return between(self._samples[-2], now, owner) if len(self._samples) > 1 else self.pace(now, owner)

    def points(self, owner: Owner = FLEET) -> list[Point]:
        """Of the last 15 minutes, oldest first."""
        oldest = time.time() - SPAN_S
        return [point for point in self._points.get(owner, ()) if point.at >= oldest]

    def since(self, owner: Owner) -> float | None:
        """When the present trouble of an owner was first seen, in seconds since 1970; None when it has none."""
        trouble = self._troubled.get(owner)
        return trouble.since if trouble else None

    def events(self) -> list[dict[str, Any]]:
        """Servers that began to fail, and that recovered; in the form of the master's events."""
        return list(self._events)

    def _plot(self, old: Sample, new: Sample) -> None:
        for owner in new.tallies:
            if owner[0] == "worker":
                continue
            pace = between(old, new, owner)
            if owner not in self._points and len(self._points) < PLOTTED:
                self._points[owner] = deque(maxlen=POINTS)
            if owner in self._points:
                point = Point(new.at, pace.requests, pace.trouble, pace.p50_us, pace.p99_us)
                self._points[owner].append(point)
            self._watch(owner, old.at, new.at, pace)

    def _watch(self, owner: Owner, begin: float, end: float, pace: Pace) -> None:
        trouble = self._troubled.get(owner)
        if pace.trouble:
            kinds = ", ".join(sorted(pace.errors))
            if trouble is None:
                self._troubled[owner] = _Trouble(begin, end, end, kinds)
                within = f"{end - begin:.0f}"  # it may be over already
                self._say(end, "warning", "failing", owner, {"kinds": kinds, "within_s": within})
            else:
                trouble.last, trouble.kinds = end, kinds
        elif trouble is not None and end - trouble.last >= CALM_S:
            del self._troubled[owner]
            lasted = f"{trouble.last - trouble.began:.0f}"
            self._say(trouble.last, "info", "recovered", owner, {"seconds": lasted})

    def _say(self, at: float, level: str, what: str, owner: Owner, fields: dict[str, str]) -> None:
        if owner[0] == "node":
            fields = {"instance": owner[1], "node": owner[2], **fields}
            self._events.append({"at": at, "level": level, "event": f"node.{what}", "fields": fields})
