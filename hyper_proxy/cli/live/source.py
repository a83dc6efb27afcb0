"""Reads the fleet for `top`, and outlives its absence: a fleet that goes away and comes back is shown again."""

from __future__ import annotations

import time
from typing import Any

from hyper_proxy.cli.admin import Admin, Unreachable
from hyper_proxy.cli.live.figures import Figures, History, Reading, figures

# A sidecar that is well answers in half a second; the screen stands still while it is waited for.
PATIENCE_S = 3.0
SLOW_SHOWN = 50


class Source:
    """The newest figures of one fleet; None before the second reading. `trouble` says why there are no newer ones."""

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self.history = History()
        self.figures: Figures | None = None
        self.slowlog: list[dict[str, Any]] = []
        self.trouble = ""
        self._last: Reading | None = None

    def read(self, with_slowlog: bool = False) -> None:
        """Asks the fleet once. What fails is told in `trouble`."""
        try:
            reading = self._ask()
            if with_slowlog:
                answer = self.admin.ask("GET", "/slowlog", {"limit": SLOW_SHOWN}, PATIENCE_S)[1]
                self.slowlog = answer.get("slowlog", [])
        except Unreachable as error:
            self.trouble, self._last = str(error), None
            self.history.add(None)
            return
        self.trouble = ""
        if self._last is not None and reading.goes_on(self._last):
            self.figures = figures(self._last, reading)
            self.history.add(self.figures)
        self._last = reading

    def read_first(self) -> None:
        """The reading from which on is counted. Raises Unreachable."""
        self.admin.expect_fleet()
        self._last = self._ask()

    def _ask(self) -> Reading:
        status, report = self.admin.ask("GET", "/stats", None, PATIENCE_S)
        if status >= 400:
            raise Unreachable(f"{self.admin.address}: {report.get('error', report)}")
        return Reading(time.monotonic(), time.time(), report)
