"""What a configuration says of two rooms: the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rooms:
    """How two rooms of servers stand in for each other, node by node (docs/rooms.md).

    prefer       the room that serves while it can: "first", "second", or "local", the one on this machine's networks
    writes       "single": to the room that serves; "mirror": to both
    on_return    what becomes of the data of a server that has missed writes, with "single": "keep" or "empty"
    interval_ms  from one question for a sign of life to the next
    failures     of these questions, or of requests, in a row: its peer serves then
    hold_s       for how long a server must have answered all of them before it serves again
    folder       for what must not be forgotten: which server has missed what; "": in memory, until the fleet ends
    max_journal  bytes of the names of keys that a server may miss before it is copied whole
    sync         "no": the system writes the file when it likes; "yes": before a client has its answer
    pinned       never written in a file: the room that an operator wants, "" while the proxy decides (overrule.py)
    """

    prefer: str = "first"
    writes: str = "single"
    on_return: str = "keep"
    interval_ms: int = 100
    failures: int = 2
    hold_s: float = 2.0
    folder: str = ""
    max_journal: int = 64 * 1024 * 1024
    sync: str = "no"
    pinned: str = ""


USUAL_ROOMS = Rooms()
