"""Readiness: what is wrong, as a list of reasons; an empty list is good. Each check is one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Check = Callable[[dict[str, Any]], str | None]


def _stopping(status: dict[str, Any]) -> str | None:
    state = status["master"]["state"]
    return f"the fleet is {state}" if state in ("draining", "stopping") else None


def _drained(status: dict[str, Any]) -> str | None:
    drained = status["overrides"]["drained"]
    return f"drained by {drained['who']}; `ctl undrain` or POST /undrain takes it back" if drained else None


def _no_worker(status: dict[str, Any]) -> str | None:
    if any(worker["state"] == "ready" for worker in status["workers"]):
        return None
    return "no worker is ready: " + ", ".join(f"{worker['slot']} {worker['state']}" for worker in status["workers"])


READINESS: tuple[Check, ...] = (_stopping, _drained, _no_worker)


def readiness(status: dict[str, Any]) -> list[str]:
    """Why no client should be sent here."""
    return [reason for check in READINESS if (reason := check(status)) is not None]
