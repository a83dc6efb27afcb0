"""The last things that happened, for who is paged: what the master logs, kept in a short list that the page shows.

The master's log has the deaths of workers and of the sidecar, reloads, orders of operators, rolled files. Workers write
what happens to their servers into the log by themselves; the sidecar finds it in the counters.
"""

from __future__ import annotations

from collections import deque
from typing import Any

KEPT = 200

# Said at every start, and no news.
_ROUTINE = frozenset({"instance.listening", "sidecar.listening", "reload.preparing"})
_LONGEST = 500


class Events:
    """The newest events, oldest first; fed by the log (hyper_proxy.common.log.watch)."""

    def __init__(self) -> None:
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT)

    def note(self, at: float, level: str, event: str, fields: dict[str, object]) -> None:
        """Takes one event of the log; `at` in seconds since 1970."""
        if level != "debug" and event not in _ROUTINE:
            texts = {name: _text(value)[:_LONGEST] for name, value in fields.items()}
            self._kept.append({"at": at, "level": level, "event": event, "fields": texts})

    def report(self) -> dict[str, Any]:
        """As JSON."""
        return {"events": list(self._kept)}


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
