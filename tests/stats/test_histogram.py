"""Histograms: every cell is at most 1/16 wide, and sums are exact; compiled and plain."""

from __future__ import annotations

from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.plain import both

TIMES_US = st.integers(0, 100_000_000)
on_both = both("hyper_proxy.stats.histogram")


@on_both
def test_small_times_have_a_cell_each(module: ModuleType) -> None:
    histogram = module.Histogram()
    for us in range(32):
        histogram.add(us)
    assert histogram.counts() == [[us, 1] for us in range(32)]
    assert [module.highest_us(us) for us in range(32)] == list(range(32))


@on_both
def test_times_outside_the_range_count_at_its_ends(module: ModuleType) -> None:
    histogram = module.Histogram()
    histogram.add(-5)
    histogram.add(10**12)
    assert histogram.snapshot() == {"sum_us": module.LONGEST_US, "cells": [[0, 1], [module.CELLS - 1, 1]]}


@on_both
def test_many_equal_times_are_added_at_once(module: ModuleType) -> None:
    histogram = module.Histogram()
    histogram.add(1000, 7)
    histogram.add(1000)
    assert (histogram.count(), histogram.sum_us, len(histogram.counts())) == (8, 8000, 1)


@on_both
@given(us=TIMES_US)
def test_a_cell_ends_at_most_a_sixteenth_above_a_time(module: ModuleType, us: int) -> None:
    histogram = module.Histogram()
    histogram.add(us)
    ((cell, _),) = histogram.counts()
    assert us <= module.highest_us(cell) <= us + us / 16


@on_both
def test_cells_ascend_without_gap(module: ModuleType) -> None:
    highest = [module.highest_us(cell) for cell in range(module.CELLS)]
    assert highest == sorted(set(highest)) and highest[-1] == module.LONGEST_US
    for us in highest[:-1]:
        histogram = module.Histogram()
        histogram.add(us)
        histogram.add(us + 1)
        assert len(histogram.counts()) == 2
