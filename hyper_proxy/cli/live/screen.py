"""What `top` draws, from the source and the state of the keys; drawing asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hyper_proxy.cli.admin import fleet_name
from hyper_proxy.cli.formats import duration, moment
from hyper_proxy.cli.live.columns import OVERVIEW, VIEWS, View, cell, latency, number
from hyper_proxy.cli.live.figures import Figures
from hyper_proxy.cli.live.source import Source
from hyper_proxy.stats import state

BARS, PLAIN_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
CURVE_TITLE = 26

GOOD, WARNING, BAD, DIM, HEAD = "bold green", "bold yellow", "bold white on red", "dim", "bold"
STYLES = {state.GOOD: GOOD, state.WARNING: WARNING, state.BAD: BAD}

HELP = """\
w i n s  workers, instances, nodes, slow requests alone
a        all of them
o r      order by the next column; in the other direction
/        show only rows with a text; Enter ends it, Esc shows all rows
space    stand still, go on
?        this help
q        end"""

GAP = 2
FEWEST = 4
"""Columns of a table that are shown however narrow the terminal is; then those on the right are left out."""


@dataclass(slots=True)
class Choice:
    """What the keys have chosen. `view` "" is the overview; `order` is a column, None for each table's own; `typing`
    says that the filter is being written."""

    view: str = ""
    order: int | None = None
    reverse: bool = False
    text: str = ""
    typing: bool = False
    frozen: bool = False
    help: bool = False


def draw(source: Source, choice: Choice, width: int, plain: bool = False) -> RenderableType:
    """The whole screen; `plain` where the terminal has no block characters."""
    shown = source.figures
    parts: list[RenderableType] = list(_trouble(source))
    if shown is None:
        parts.append(Text(f"reading {source.admin.address} ..." if not source.trouble else "", DIM))
    else:
        parts += [*_header(shown, choice), *_curves(source, width, plain), Text()]
        parts += _tables(shown | {"slowlog": source.slowlog}, choice, width)
    if choice.help:
        parts.append(Text(f"\n{HELP}"))
    if choice.typing:
        parts.append(Text(f"\n/{choice.text}_", HEAD))
    elif choice.text:
        parts.append(Text(f"\nonly rows with '{choice.text}'; Esc shows all", DIM))
    return Group(*parts)


def _trouble(source: Source) -> Iterable[RenderableType]:
    if source.trouble:
        age = f"; what is below is of {moment(source.figures['at'])}" if source.figures else ""
        yield Text(f" {source.trouble}; trying again{age} ", BAD)


def _header(shown: Figures, choice: Choice) -> Iterable[Text]:
    master, config, totals = shown["master"], shown["config"], shown["totals"]
    ready = sum(row["state"] == "ready" for row in shown["workers"])
    slots = len({row["slot"] for row in shown["workers"]})
    line = Text(f" {shown['state'].upper()} ", STYLES[state.level_of(shown["state"])])
    workers = f"{ready} of {slots} workers ready"
    line.append(f"  {fleet_name(shown['fleet'])}, up {duration(master['uptime_s'])}, {workers}", "")
    if choice.frozen:
        line.append("   standing still: space goes on", HEAD)
    yield line
    reload = config["last_reload"]
    words = reload["summary"] if reload["ok"] else reload["error"].splitlines()[0]
    verdict = "last reload" if reload["ok"] else "last reload REFUSED"
    since = f"generation {config['generation']} since {moment(config['loaded_at'])}"
    yield Text(f"{since}; {verdict} {moment(reload['at'])}: {words}", "" if reload["ok"] else BAD)
    p50, p99 = (latency(totals[name]) if totals[name] is not None else "-" for name in ("p50_us", "p99_us"))
    yield Text(
        f"{number(totals['requests_per_s'])} requests/s   {number(totals['errors_per_s'])} errors/s   p50 {p50}   "
        f"p99 {p99}   {totals['clients']} clients, {totals['in_flight']} wait",
        HEAD,
    )


def _curves(source: Source, width: int, plain: bool) -> Iterable[Text]:
    room = max(10, width - CURVE_TITLE - 1)
    for title, points, show in (
        ("requests/s", source.history.requests_per_s, number),
        ("p99", source.history.p99_us, latency),
    ):
        top = max((point for point in points if point is not None), default=0)
        label = f"{title}, top {show(top)}" if top else title
        yield Text(f"{label:<{CURVE_TITLE}}").append(curve(list(points)[-room:], PLAIN_BARS if plain else BARS), "cyan")


def curve(points: Sequence[float | None], bars: str = BARS) -> str:
    """One character for each point, as high as its share of the highest one; a blank where there is none."""
    top = max((point for point in points if point), default=0)
    steps = len(bars) - 1
    return "".join(bars[max(1, round(point / top * steps)) if point and top else 0] for point in points)


def _tables(shown: Figures, choice: Choice, width: int) -> Iterable[RenderableType]:
    for key in (choice.view,) if choice.view else OVERVIEW:
        yield _table(VIEWS[key], shown[VIEWS[key].rows], choice, width)


def _table(view: View, rows: list[dict[str, Any]], choice: Choice, width: int) -> Table:
    by = _order(view, choice)
    mark = " ^" if choice.reverse else " v"
    titles = [
        column.title + (mark if index == by and choice.order is not None else "")
        for index, column in enumerate(view.columns)
    ]
    shown = chosen(view, rows, choice)
    cells = [[cell(column, row) for column in view.columns] for row in shown]
    room = _room([titles, *cells], width)
    table = Table(
        box=None, pad_edge=False, padding=(0, GAP, 0, 0), title=view.title, title_justify="left", title_style=HEAD,
        header_style=DIM,
    )  # fmt: skip
    for title, column in zip(titles[:room], view.columns, strict=False):
        table.add_column(title, justify="left" if column.left else "right", no_wrap=True, overflow="ellipsis")
    for row, texts in zip(shown, cells, strict=True):
        table.add_row(*texts[:room], style=_style(row))
    return table


def _room(lines: list[list[str]], width: int) -> int:
    """How many columns fit."""
    widths = [max(map(len, texts)) + GAP for texts in zip(*lines, strict=True)]
    count = len(widths)
    while count > FEWEST and sum(widths[:count]) - GAP > width:
        count -= 1
    return count


def chosen(view: View, rows: list[dict[str, Any]], choice: Choice) -> list[dict[str, Any]]:
    """The rows that have the text, in the order that is asked for."""
    text = choice.text.lower()
    kept = [row for row in rows if not text or any(text in cell(column, row).lower() for column in view.columns)]
    index = _order(view, choice)
    if choice.order is None and not view.order:
        return kept
    column = view.columns[index]
    there = [row for row in kept if row.get(column.name) not in (None, "")]
    missing = [row for row in kept if row.get(column.name) in (None, "")]
    return sorted(there, key=lambda row: row[column.name], reverse=column.left is choice.reverse) + missing


def _order(view: View, choice: Choice) -> int:
    return view.order if choice.order is None else choice.order % len(view.columns)


def _style(row: dict[str, Any]) -> str:
    if row.get("state") in (None, "ready", "up", "idle", "untried"):
        return ""
    return "yellow" if row["state"] in ("booting", "draining", "drained", "maintenance") else "red"
