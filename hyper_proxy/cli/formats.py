"""Tables, sizes and times as text that people read in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

Row = Sequence[object]


def table(head: Row, rows: Iterable[Row]) -> str:
    """Columns as wide as they must be; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    right = [all(_is_number(row[column]) for row in cells[1:]) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    )


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _is_number(cell: str) -> bool:
    return cell == "-" or cell.rstrip("KMGTs%").replace(".", "", 1).isdecimal()


def size(count: float | None) -> str:
    """Bytes in few characters."""
    if count is None:
        return ""
    for unit in ("", "K", "M", "G"):
        if abs(count) < 1024:
            return f"{count:.1f}{unit}" if unit and count < 10 else f"{count:.0f}{unit}"
        count /= 1024
    return f"{count:.1f}T"


def duration(seconds: float | None) -> str:
    """Seconds in few characters: 41s, 12m, 5h, 9d."""
    if seconds is None:
        return ""
    for limit, unit, divisor in ((120, "s", 1), (7200, "m", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / divisor:.0f}{unit}"
    return f"{seconds / 86_400:.0f}d"


def moment(at: float, timespec: str = "seconds") -> str:
    """Seconds since 1970 as in the log: UTC."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
