"""Numbers as people read them at night: three digits, and a unit."""

from __future__ import annotations

import time
from collections.abc import Callable

NOTHING = "-"

_THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))
_AGES = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def number(value: float | None) -> str:
    """12.3k; a rate below one keeps a digit."""
    if value is None:
        return NOTHING
    for size, unit in _THOUSANDS:
        if abs(value) >= 10 * size or (size > 1e3 and abs(value) >= size):
            return _three(value / size) + unit
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}" if value >= 0.1 else "<0.1"


def duration(us: float | None) -> str:
    """Microseconds: 480 µs, 1.2 ms, 3.4 s."""
    if not us:
        return NOTHING
    if us < 1000:
        return f"{us:.0f} µs"
    return f"{_three(us / 1000)} ms" if us < 1e6 else f"{_three(us / 1e6)} s"


def size(count: float | None) -> str:
    """Bytes: 12.3 MB."""
    if count is None:
        return NOTHING
    for factor, unit in _BYTES:
        if count >= factor:
            return f"{_three(count / factor)} {unit}"
    return f"{count:.0f} B"


def age(seconds: float | None) -> str:
    """3 h 12 min, two units at most."""
    if seconds is None:
        return NOTHING
    for large, name, small, small_name in _AGES:
        if seconds >= large:
            rest = int(seconds % large // small)
            return f"{int(seconds // large)} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{max(0.0, seconds):.0f} s"


def ago(at: float | None) -> str:
    """How long since a moment (seconds since 1970)."""
    return NOTHING if at is None else f"{age(max(0.0, time.time() - at))} ago"


def clock(at: float | None) -> str:
    """The moment in UTC: the time alone if that was within a day."""
    if at is None:
        return NOTHING
    form = "%H:%M:%S" if abs(time.time() - at) < 86400 else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, time.gmtime(at))


def percent(share: float | None) -> str:
    """Of one."""
    return NOTHING if share is None else f"{share * 100:.0f} %"


def _three(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.1f}"


FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "duration": duration,
    "size": size,
    "age": age,
    "ago": ago,
    "clock": clock,
    "percent": percent,
}
"""Filters of the templates, by name."""
