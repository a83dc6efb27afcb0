"""When keys begin to move and to return, on clocks that are set."""

from __future__ import annotations

import pytest

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Timeout
from hyper_proxy.conn_pool.moving.schedule import Schedule

BEGINS, BACK = 1000.0, 2000.0


class Clock:
    """The clock of the machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 0.0
        monkeypatch.setattr("hyper_proxy.conn_pool.moving.schedule.time.time", lambda: self.at)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """One that stands where it is set to."""
    return Clock(monkeypatch)


@pytest.mark.parametrize(
    ("at", "stage", "ahead", "hold_left"),
    [
        (999.0, 0, 0, 0.0), (999.2, None, 1, 1.3), (1000.4, None, 1, 0.1), (1000.5, 1, 1, 0.0), (1999.0, 1, 1, 0.0),
        (1999.5, None, 2, 1.0), (2000.5, 2, 2, 0.0),
    ],
)  # fmt: skip
def test_stages(clock: Clock, at: float, stage: int | None, ahead: int, hold_left: float) -> None:
    plan = Schedule([BEGINS, BACK], Timeout(50, 200, 200))  # twice 450 ms
    clock.at = at
    assert (plan.stage(), plan.ahead()) == (stage, ahead)
    assert plan.hold_left() == pytest.approx(hold_left)


def test_a_clock_that_is_set_back_does_not_take_the_keys_back(clock: Clock) -> None:
    plan = Schedule([BEGINS], Timeout())
    clock.at = BEGINS + 1
    assert plan.stage() == 1
    clock.at = BEGINS - 100
    assert (plan.stage(), plan.ahead(), plan.hold_left()) == (1, 1, 0.0)
    reloaded = Schedule([BEGINS, BACK], Timeout())
    reloaded.check_begin(plan)
    assert reloaded.stage() == 1


def test_a_moment_that_comes_too_soon_is_refused_unless_it_is_known(clock: Clock) -> None:
    plan = Schedule([BEGINS], Timeout(50, 200, 200))
    clock.at = BEGINS - 5.8
    with pytest.raises(HyperProxyError, match=r"at least 5\.9 seconds ahead"):
        plan.check_begin(None)
    plan.check_begin(Schedule([BEGINS], Timeout()))
    clock.at = BEGINS - 6
    plan.check_begin(None)
