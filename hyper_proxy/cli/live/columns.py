"""The tables of `top`: which columns, how each value looks, which is the first to order by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.cli.ctl_show import PHASES
from hyper_proxy.cli.formats import duration, moment, size


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is the field of the figures; `show` its text; `left` says that it is text and not a number."""

    title: str
    name: str
    show: Callable[[Any], str] = str
    left: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """One table: the list of the figures that it shows, and the column by which it is ordered, largest first; 0: as it
    comes."""

    title: str
    rows: str
    columns: tuple[Column, ...]
    order: int = 0


def number(value: float) -> str:
    """A rate or a count in few characters."""
    if value >= 1_000_000:
        return f"{value / 1e6:.2f}M"
    if value >= 10_000:
        return f"{value / 1e3:.1f}k"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def latency(us: float) -> str:
    """Microseconds in the unit in which they are short."""
    if us >= 1_000_000:
        return f"{us / 1e6:.2f}s"
    return f"{us / 1e3:.1f}ms" if us >= 1000 else f"{us:.0f}us"


def lag(seconds: float) -> str:
    """Milliseconds."""
    return f"{seconds * 1000:.1f}"


VIEWS: dict[str, View] = {
    "w": View("workers", "workers", (
        Column("slot", "slot"), Column("pid", "pid"), Column("gen", "generation"), Column("state", "state", left=True),
        Column("req/s", "requests_per_s", number), Column("clients", "connections"), Column("in flight", "in_flight"),
        Column("cpu %", "cpu_percent", number), Column("memory", "rss_bytes", size),
        Column("lag ms", "loop_lag_s", lag), Column("uptime", "uptime_s", duration), Column("restarts", "restarts"),
        Column("last exit", "last_exit", left=True),
    )),
    "i": View("instances", "instances", (
        Column("instance", "instance", left=True), Column("req/s", "requests_per_s", number),
        Column("err/s", "errors_per_s", number), Column("p50", "p50_us", latency), Column("p99", "p99_us", latency),
        Column("clients", "clients"), Column("in flight", "in_flight"), Column("queued", "queued"),
        Column("in/s", "bytes_in_per_s", size), Column("out/s", "bytes_out_per_s", size), Column("nodes", "nodes"),
    ), 1),
    "n": View("nodes", "nodes", (
        Column("instance", "instance", left=True), Column("node", "node", left=True),
        Column("state", "state", left=True), Column("req/s", "requests_per_s", number),
        Column("err/s", "errors_per_s", number), Column("p50", "p50_us", latency), Column("p99", "p99_us", latency),
        Column("conns", "connections"), Column("in flight", "in_flight"), Column("queued", "queued"),
        Column("in/s", "bytes_in_per_s", size), Column("out/s", "bytes_out_per_s", size),
    ), 3),
    "s": View("slow requests", "slowlog", (
        Column("at", "at", moment, left=True), Column("total", "total_us", latency),
        Column("instance", "instance", left=True), Column("command", "command", left=True),
        Column("key", "key", left=True), Column("node", "node", left=True),
        *(Column(name, f"{name}_us", latency) for name in PHASES),
        Column("client", "client", left=True), Column("error", "error", left=True),
    )),
}  # fmt: skip
"""By the key that shows it alone."""

OVERVIEW = ("w", "i", "n")
"""What stands below one another when none is chosen."""


def cell(column: Column, row: dict[str, Any]) -> str:
    """The text of one value; "-" where there is none."""
    value = row.get(column.name)
    return "-" if value is None or value == "" else column.show(value)
