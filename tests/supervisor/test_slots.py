"""The history of a slot."""

from __future__ import annotations

import socket
import time

from hyper_proxy.common.segment import Segment
from supervisor.exits import Exit
from supervisor.loop import Loop
from supervisor.pipe import Pipe
from supervisor.slots import (
    BACKOFF_MAX_S,
    HEALTHY_S,
    LOOP_DEATHS,
    LOOP_WINDOW_S,
    QUARANTINE_S,
    Slot,
    SlotState,
    backoff_s,
)


def test_the_pause_doubles_up_to_its_limit() -> None:
    assert [backoff_s(failures) for failures in range(4)] == [0.1, 0.2, 0.4, 0.8]
    assert backoff_s(9) == BACKOFF_MAX_S == backoff_s(10**6)


def test_a_healthy_life_makes_the_pause_short_again() -> None:
    ours, theirs = socket.socketpair()
    loop = Loop()
    pipe = Pipe(loop, ours, lambda message: None, lambda: None)
    slot = Slot(0, Segment(1).take())
    slot.note_birth(1, pipe, 1)
    assert slot.note_death(Exit(1 << 8, "", 1.0)) == 0.1
    slot.note_birth(2, pipe, 1)
    assert slot.note_death(Exit(1 << 8, "", 1.0)) == 0.2
    slot.note_birth(3, pipe, 1)
    slot.born_at_s = time.monotonic() - HEALTHY_S
    assert slot.note_death(Exit(9, "it hangs", 61.0)) == 0.1
    assert slot.state is SlotState.WAITING
    assert not slot.live
    assert (slot.births, slot.restarts, slot.last_exit) == (3, 2, "signal KILL: it hangs")
    pipe.close()
    theirs.close()
    loop.close()


def die(slot: Slot) -> tuple[SlotState, float]:
    """What becomes of the slot, and the pause before its next worker."""
    pause = slot.note_death(Exit(1 << 8, "", 1.0))
    return slot.state, pause


def test_only_quick_deaths_in_a_row_lead_to_quarantine() -> None:
    slot = Slot(0, Segment(1).take())
    assert [die(slot)[0] for _ in range(LOOP_DEATHS - 1)] == [SlotState.WAITING] * (LOOP_DEATHS - 1)
    slot.deaths[0] -= LOOP_WINDOW_S  # that one is too long ago
    assert die(slot)[0] is SlotState.WAITING
    assert die(slot) == (SlotState.QUARANTINED, QUARANTINE_S)
