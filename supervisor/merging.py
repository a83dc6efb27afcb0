"""Makes few of many: an action that is asked for over and over within a short time is done at the first call, and once
more when the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from supervisor.loop import Loop


class Merging:
    """Calls `action` for the first `request`, and once for all that follow within `seconds` of it, at their end."""

    def __init__(self, loop: Loop, seconds: float, action: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._action = action
        self._free_at_s = 0.0
        self._pending = False

    def request(self) -> None:
        """Acts now or soon."""
        wait_s = self._free_at_s - time.monotonic()
        if self._pending:
            return
        if wait_s > 0:
            self._pending = True
            self._loop.later(wait_s, self._act)
        else:
            self._act()

    def _act(self) -> None:
        self._pending = False
        self._free_at_s = time.monotonic() + self._seconds
        self._action()
