"""The shared cells."""

from __future__ import annotations

import os

import pytest

from hyper_proxy.common.segment import CELL_BYTES, WORD_BYTES, WORDS, Segment


def test_the_words_fit_into_a_cell_and_do_not_overlap() -> None:
    assert len(set(WORDS.values())) == len(WORDS)
    assert max(WORDS.values()) < CELL_BYTES // WORD_BYTES


def test_cells_are_apart_and_values_are_cut_off() -> None:
    segment = Segment(2)
    first, second = segment.take(), segment.take()
    first.put("lag_us", -5)
    second.put("lag_us", 1 << 70)
    assert first.get("lag_us") == 0
    assert second.get("lag_us") == (1 << 64) - 1
    segment.give_back(second)
    assert segment.take().get("lag_us") == 0
    with pytest.raises(OSError):
        segment.take()


def test_what_a_child_writes_the_parent_reads() -> None:
    cell = Segment(1).take()
    pid = os.fork()
    if pid == 0:
        cell.put("generation", 42)
        os._exit(0)
    os.waitpid(pid, 0)
    assert cell.get("generation") == 42
