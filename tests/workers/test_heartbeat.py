"""The beat and the lag it shows."""

from __future__ import annotations

import time

from hyper_proxy.common.segment import Segment
from workers.heartbeat import Heartbeat


def test_a_late_beat_is_shown_for_a_second() -> None:
    cell = Segment(1).take()
    heart = Heartbeat(cell, lambda: None)
    heart.beat(0, 0)
    heart.beat(1, 80_000)
    assert cell.get("lag_us") == 80_000
    for count in (2, 3, 4):
        heart.beat(count, 100)
        assert cell.get("lag_us") == 80_000
    heart.beat(5, 100)
    assert cell.get("lag_us") == 100
    assert 0 <= time.monotonic_ns() - cell.get("beat_ns") < 10**9
