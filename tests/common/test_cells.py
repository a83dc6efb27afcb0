"""Generation cells: what a reader of one process sees of the writers of others."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from hyper_proxy.common import cells
from hyper_proxy.common.cells import BUSY_NS, Cells


@pytest.fixture
def shared() -> Iterator[Cells]:
    """With those processes that the test forks."""
    mine = Cells()
    mine.share()
    yield mine
    os.close(mine.fd)


def in_a_child(work: object) -> None:
    """Call it in another process, and wait for that."""
    pid = os.fork()
    if pid == 0:
        work()  # type: ignore[operator]
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_write_of_another_process_changes_the_cell_twice(shared: Cells) -> None:
    cell = Cells.of(b"key")
    before = shared.words[cell]
    tokens = []

    def begin() -> None:
        shared.begin(cell)

    in_a_child(begin)
    tokens.append(shared.words[cell])
    assert tokens[0] != before and shared.is_busy(tokens[0])
    in_a_child(lambda: shared.end(cell, tokens[0]))
    assert shared.words[cell] not in (before, *tokens)
    assert not shared.is_busy(shared.words[cell])


def test_of_two_writers_neither_says_that_nothing_is_under_way(shared: Cells) -> None:
    one = shared.begin(3)
    other = shared.begin(3)
    shared.end(3, one)
    assert shared.is_busy(shared.words[3]), "the other one is not ready"
    shared.end(3, other)
    assert shared.words[3] not in (one, other)


def test_who_never_ends_is_not_believed_for_ever(shared: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    token = shared.begin(5)
    assert shared.is_busy(token)
    later = time.monotonic_ns() + BUSY_NS + 1_000_000
    monkeypatch.setattr(cells, "monotonic_ns", lambda: later)
    assert not shared.is_busy(token)


def test_no_token_comes_twice(shared: Cells) -> None:
    tokens = [shared.begin(number % 7) for number in range(5000)]
    assert len(set(tokens)) == len(tokens) and tokens == sorted(tokens)
    shared.disturb_all()
    assert not set(tokens) & set(shared.words)


def test_who_gets_the_file_has_the_same_cells(shared: Cells) -> None:
    heir = Cells()
    heir.share(os.dup(shared.fd))
    token = shared.begin(1)
    assert heir.words[1] == token
    heir.end(1, token)
    assert shared.words[1] != token
    assert Cells.of(b"a") == Cells.of(b"a") != Cells.of(b"b")
    os.close(heir.fd)
