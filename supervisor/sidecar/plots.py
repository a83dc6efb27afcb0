"""Plots of the last 15 minutes as SVG, made here: no script draws them and nothing is loaded from elsewhere.

Colours come from the style sheet by class, so that they follow light and dark. What a line means is said by its form
and by words, not by colour alone. All text in them is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from supervisor.sidecar.formats import duration, number
from supervisor.sidecar.history import EVERY_S, SPAN_S, Point
from supervisor.sidecar.keys import PHASES

WIDTH, HEIGHT = 600, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 8, 8, 20
# A hole in the samples is shown as a hole.
_GAP_S = 3 * EVERY_S
_MINUTES = (15, 10, 5, 0)

SPARK_WIDTH, SPARK_HEIGHT = 120, 22
BAR_WIDTH, BAR_HEIGHT = 160, 12


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to heights: `top` is the largest value, `ticks` are those that are labelled."""

    of: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


def rates(points: Sequence[Point], now: float) -> Markup:
    """Requests a second as an area, errors a second as bars before it."""
    scale = _linear(max([point.requests for point in points] + [point.trouble for point in points] + [1.0]))
    runs = list(_runs(points))
    inside = [
        *_grid(scale),
        *(_area(run, now, scale.of, lambda point: point.requests) for run in runs),
        *(_line(run, now, scale.of, lambda point: point.requests, "requests") for run in runs),
        *_bars(points, now, scale.of),
    ]
    return _svg("Requests and errors a second, last 15 minutes", inside)


def latencies(points: Sequence[Point], now: float) -> Markup:
    """The median as a line, the 99th percentile as a dashed one; logarithmic."""
    busy = [point for point in points if point.p99_us]
    low = min([point.p50_us for point in busy if point.p50_us] or [100])
    scale = _logarithmic(low, max([point.p99_us for point in busy] or [1000]))
    runs = list(_runs(busy))
    inside = [
        *_grid(scale),
        *(_line(run, now, scale.of, lambda point: point.p50_us, "p50") for run in runs),
        *(_line(run, now, scale.of, lambda point: point.p99_us, "p99") for run in runs),
    ]
    return _svg("Median and 99th percentile of the latency, last 15 minutes, logarithmic", inside)


def spark(points: Sequence[Point], now: float) -> Markup:
    """Requests and errors without axes, for a row of a table."""
    top = max([point.requests for point in points] + [point.trouble for point in points] + [1.0])
    parts = [f'<line class="grid" x1="0" x2="{SPARK_WIDTH}" y1="{SPARK_HEIGHT - 1}" y2="{SPARK_HEIGHT - 1}"/>']
    for run in _runs(points):
        line = " ".join(f"{_spark_x(point, now):.1f},{_spark_y(point.requests, top):.1f}" for point in run)
        parts.append(f'<polyline class="requests" points="{line}"/>')
    parts += [
        f'<rect class="trouble" x="{_spark_x(point, now) - 1:.1f}" width="1.6" '
        f'y="{min(_spark_y(point.trouble, top), SPARK_HEIGHT - 5):.1f}" height="{SPARK_HEIGHT}"/>'
        for point in points
        if point.trouble
    ]
    troubled = sum(bool(point.trouble) for point in points)
    title = f"requests of the last 15 minutes, at most {number(top)} a second"
    title += f"; errors during {number(troubled * EVERY_S)} s of them" if troubled else "; no errors"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" width="{SPARK_WIDTH}" '
        f'height="{SPARK_HEIGHT}" role="img" aria-label="{title}"><title>{title}</title>{"".join(parts)}</svg>'
    )


def phases(entry: dict[str, Any]) -> Markup:
    """Where the time of a slow request went, as one bar of as many parts; the words stand in its title."""
    times = [(name, max(0, int(entry.get(f"{name}_us") or 0))) for name in PHASES]
    total = sum(us for _, us in times) or 1
    parts, x = [], 0.0
    for index, (_, us) in enumerate(times):
        width = BAR_WIDTH * us / total
        parts.append(f'<rect class="phase{index}" x="{x:.1f}" width="{width:.1f}" height="{BAR_HEIGHT}"/>')
        x += width
    title = ", ".join(f"{name} {duration(us)}" for name, us in times if us)
    return Markup(
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" width="{BAR_WIDTH}" height="{BAR_HEIGHT}" '
        f'role="img" aria-label="{title}"><title>{title}</title>{"".join(parts)}</svg>'
    )


def _spark_x(point: Point, now: float) -> float:
    return SPARK_WIDTH * (1 - (now - point.at) / SPAN_S)


def _spark_y(value: float, top: float) -> float:
    return SPARK_HEIGHT - 1 - (SPARK_HEIGHT - 3) * value / top


def _linear(top: float) -> Scale:
    step = 10 ** math.floor(math.log10(top))
    step = next(step * factor for factor in (0.25, 0.5, 1, 2, 5) if step * factor * 4 >= top)
    count = math.ceil(top / step)
    ticks = [(step * index, number(step * index)) for index in range(count + 1)]
    return Scale(lambda value: value / (step * count), ticks)


def _logarithmic(low: float, high: float) -> Scale:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high + 1))
    last = max(last, first + 1)
    ticks = [(10.0**power, duration(10**power)) for power in range(first, last + 1)]
    return Scale(lambda value: (math.log10(max(value, 10**first)) - first) / (last - first), ticks)


def _x(at: float, now: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (1 - (now - at) / SPAN_S)


def _y(share: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - share)


def _runs(points: Sequence[Point]) -> Iterator[list[Point]]:
    """The points without those parts of time in which there are none."""
    run: list[Point] = []
    for point in points:
        if run and point.at - run[-1].at > _GAP_S:
            yield run
            run = []
        run.append(point)
    if run:
        yield run


def _grid(scale: Scale) -> Iterator[str]:
    for value, label in scale.ticks:
        y = _y(scale.of(value))
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{"0" if not value else label}</text>'
    for minutes in _MINUTES:
        x = _x(-60 * minutes, 0)
        label, anchor = (f"-{minutes} min", "middle" if minutes < 15 else "start") if minutes else ("now", "end")
        yield f'<text x="{x:.1f}" y="{HEIGHT - 5}" text-anchor="{anchor}">{label}</text>'


def _coordinates(run: list[Point], now: float, scale: Callable[[float], float], of: Callable[[Point], float]) -> str:
    return " ".join(f"{_x(point.at, now):.1f},{_y(scale(of(point))):.1f}" for point in run)


def _line(
    run: list[Point], now: float, scale: Callable[[float], float], of: Callable[[Point], float], name: str
) -> str:
    return f'<polyline class="{name}" points="{_coordinates(run, now, scale, of)}"/>'


def _area(run: list[Point], now: float, scale: Callable[[float], float], of: Callable[[Point], float]) -> str:
    first, last, bottom = _x(run[0].at, now), _x(run[-1].at, now), _y(0)
    points = f"{first:.1f},{bottom} {_coordinates(run, now, scale, of)} {last:.1f},{bottom}"
    return f'<polygon class="area" points="{points}"/>'


def _bars(points: Sequence[Point], now: float, scale: Callable[[float], float]) -> Iterator[str]:
    """Errors, never so low that they are not seen."""
    for point in points:
        if point.trouble:
            y = min(_y(scale(point.trouble)), _y(0) - 4)
            x = _x(point.at, now) - 1.5
            yield f'<rect class="trouble" x="{x:.1f}" width="2.4" y="{y:.1f}" height="{_y(0) - y:.1f}"/>'


def _svg(title: str, inside: list[str]) -> Markup:
    return Markup(
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{''.join(inside)}</svg>"
    )
