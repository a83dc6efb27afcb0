"""Rows in shared memory: what a process counts and holds is seen by the others, as long as it lives."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hyper_proxy.common.board import Board, Boards, Rows


@contextmanager
def elsewhere(act: Callable[[], object]) -> Iterator[int]:
    """Another process, which has done this and lives on: its pid. It is killed at the end, if not before."""
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            os.write(telling, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(telling)
    try:
        assert os.read(told, 1) == b"x", "it could do it"
        yield child
    finally:
        os.close(told)
        kill(child)


def kill(child: int) -> None:
    """At once, if it is there."""
    with suppress(ChildProcessError, ProcessLookupError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_what_a_process_held_and_had_under_way_ends_with_it() -> None:
    rows = Rows(Board(os.memfd_create("board")))

    def hold() -> None:
        rows.take()
        counts, begun, flags = rows.own()
        counts[7] = begun[7] = 1
        flags[9] = 1

    with elsewhere(hold):
        assert rows.take()
        rows.sweep(1.0)
        assert [(counts[7], begun[7]) for counts, begun in rows.of_others()] == [(1, 1)]
        assert [flags[9] for flags in rows.flags()] == [1, 0]
    rows.own()[2][3] = 1
    rows.sweep(2.0)
    assert [counts[7] for counts, _ in rows.of_others()] == [0]
    assert [(flags[9], flags[3]) for flags in rows.flags()] == [(0, 0), (0, 1)]


def test_a_folder_is_for_one_fleet_as_long_as_one_of_its_workers_lives(tmp_path: Path) -> None:
    folder = str(tmp_path / "rooms")
    master = Boards()
    master.share()
    with elsewhere(lambda: master.of(folder)) as one, elsewhere(lambda: master.of(folder)) as other:
        for worker in (one, other):
            with pytest.raises(OSError, match=rf"another fleet uses it \(master {os.getpid()}\)"):
                Boards().of(folder)
            kill(worker)
    Boards().of(folder)


def held_by_others(folder: str) -> bool:
    """May another fleet not have it? Asked by a process of its own, for to itself a lock is none."""
    child = os.fork()
    if child == 0:
        try:
            Boards().of(folder)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_folder_is_given_back_when_all_have_left_it(tmp_path: Path) -> None:
    boards, folder = Boards(), str(tmp_path / "rooms")
    board = boards.of(folder)
    assert boards.of(folder) is board
    boards.leave(board)
    assert held_by_others(folder), "one still uses it"
    boards.leave(board)
    assert not held_by_others(folder)
    assert boards.of(folder) is board
    assert held_by_others(folder)


def test_a_folder_has_one_board_whatever_it_is_called(tmp_path: Path) -> None:
    boards, folder = Boards(), tmp_path / "rooms"
    board = boards.of(str(folder))
    (tmp_path / "other").symlink_to(folder)
    for name in ("other", "rooms/", "./rooms", "other/../rooms"):
        assert boards.of(f"{tmp_path}/{name}") is board
    gc.collect()
    assert held_by_others(str(folder)), "a second board that is freed would have given it back"


def test_a_refusal_takes_nothing_from_who_gets_the_folder_later(tmp_path: Path) -> None:
    folder = str(tmp_path / "rooms")
    other, boards = Boards(), Boards()
    with elsewhere(lambda: other.of(folder)), pytest.raises(OSError, match="another fleet uses it") as refused:
        boards.of(folder)
    boards.of(folder)
    del refused
    gc.collect()
    assert held_by_others(folder)


def test_a_board_in_a_folder_has_its_room_on_the_disk(tmp_path: Path) -> None:
    board = Boards().of(str(tmp_path / "rooms"))
    assert board.place("one").words[1] == 0
    found = (tmp_path / "rooms/board").stat()
    assert found.st_blocks * 512 >= found.st_size > 0
    with pytest.raises(FileNotFoundError):
        Boards().of(str(tmp_path / "not there/rooms"))
