"""What a worker counts of a server beside the requests that its connections count."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class NodeStats:
    """Counters by their names in table.py, which says what they mean. A reload that changes the server keeps them."""

    connects: int = 0
    handed_on: int = 0
    warmed: int = 0
    hand_overs: int = 0
    handed_over: int = 0
    took_over: int = 0
    copied: int = 0
