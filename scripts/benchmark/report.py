"""Medians, and the table that goes into docs/benchmarks.md."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from scripts.benchmark.cases import Case
from scripts.benchmark.sides import DIRECT, TWEMPROXY

COLUMNS = (
    "case", "twemproxy µs", "this µs", "ratio", "target",
    "twemproxy req/s", "1 worker req/s", "2 workers req/s", "direct req/s",
)  # fmt: skip


@dataclass(slots=True)
class Samples:
    """Of one case on one side, a number for each round."""

    cpu_us: list[float] = field(default_factory=list)  # CPU time of the process tree, per request
    rate: list[float] = field(default_factory=list)  # requests per second


Results = dict[tuple[str, str], Samples]  # by case and side


def summary(results: Results) -> list[dict[str, Any]]:
    """One record for each case and side."""
    return [
        {"case": case, "side": side, "cpu_us": round(median(samples.cpu_us), 3), "rate": round(median(samples.rate))}
        | {"rounds": len(samples.rate), "cpu_us_rounds": [round(value, 3) for value in samples.cpu_us]}
        for (case, side), samples in results.items()
    ]


ONE = "1 worker"


def ratio(results: Results, case: str, side: str = ONE, base: str = TWEMPROXY) -> float | None:
    """CPU time of one side, by that of another in the same round; the median over the rounds."""
    ours, theirs = results.get((case, side)), results.get((case, base))
    if ours is None or theirs is None:
        return None
    return median(a / b for a, b in zip(ours.cpu_us, theirs.cpu_us, strict=True))


def variants(results: Results, cases: list[Case]) -> str:
    """What fleets of one worker with something more cost, by the one without; a line for each."""
    sides = dict.fromkeys(side for _, side in results if side.startswith(f"{ONE}, "))
    lines = []
    for side in sides:
        ratios = ((case.name, ratio(results, case.name, side, ONE)) for case in cases)
        lines.append(f"{side}: " + ", ".join(f"{name} {value:.2f}" for name, value in ratios if value is not None))
    return "\n".join(lines)


def table(results: Results, cases: list[Case]) -> str:
    """The results as a markdown table."""

    def cell(case: str, side: str, what: str) -> str:
        samples = results.get((case, side))
        if samples is None:
            return "-"
        return f"{median(samples.cpu_us):.2f}" if what == "cpu" else f"{median(samples.rate):,.0f}"

    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for case in cases:
        by_twemproxy = ratio(results, case.name)
        row = [case.name, cell(case.name, TWEMPROXY, "cpu"), cell(case.name, ONE, "cpu")]
        row += ["-" if by_twemproxy is None else f"{by_twemproxy:.2f}", f"≤ {case.target}"]
        row += [cell(case.name, side, "rate") for side in (TWEMPROXY, ONE, "2 workers", DIRECT)]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def machine() -> str:
    """Its size, as far as it bears on the numbers."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB memory, Linux {os.uname().release}"
