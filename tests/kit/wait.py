"""Waiting for something that will happen; the only place of the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.01


def wait_for(check: Callable[[], T], what: str, timeout_s: float = 20.0) -> T:
    """Ask `check` until its answer is true, and return that; AssertionError that names `what` when time is up."""
    end = time.monotonic() + timeout_s
    while not (answer := check()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s} s in vain: {what}")
        time.sleep(POLL_S)
    return answer
