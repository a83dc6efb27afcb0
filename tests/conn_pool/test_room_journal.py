"""The journal of what a side of a pair has missed."""

from __future__ import annotations

import os
from pathlib import Path

import gevent
import pytest

from hyper_proxy.common.board import Board
from hyper_proxy.common.turn import let_others_run
from hyper_proxy.conn_pool.rooms.journal import Full, Journal


def journal(folder: Path, most_bytes: int = 1 << 20, board: Board | None = None) -> Journal:
    """One on a board of its own, or on this one."""
    board = board or Board(os.memfd_create("test"))
    return Journal(str(folder), "shop", board.place("pair"), 1, most_bytes, sync=True)


def everything(one: Journal) -> list[tuple[int, bytes]]:
    """All records of all files, the oldest file first."""
    return [record for path in sorted(one.folder.iterdir()) for record in one.read(path)]


def test_what_was_kept_is_read_once(tmp_path: Path) -> None:
    one = journal(tmp_path)
    assert one.is_empty()
    one.add([(0, b"a"), (15, b"\x00\r\n")])
    one.add([(0, b"a"), (0, b"b" * 70_000)])
    assert not one.is_empty()
    assert everything(one) == [(0, b"a"), (15, b"\x00\r\n"), (0, b"b" * 70_000)]


def test_a_key_that_is_missed_again_while_it_is_copied_is_kept_again(tmp_path: Path) -> None:
    board = Board(os.memfd_create("test"))
    writer, copier = journal(tmp_path, board=board), journal(tmp_path, board=board)
    writer.add([(0, b"a")])
    (path,) = copier.begin_another()
    writer.add([(0, b"a")])
    assert list(copier.read(path)) == [(0, b"a")]
    path.unlink()
    (other,) = copier.begin_another()
    assert other != path
    assert list(copier.read(other)) == [(0, b"a")]
    assert list(copier.read(path)) == [], "another one has copied it"


def test_many_are_read_while_others_run(tmp_path: Path) -> None:
    """Else a worker that reads all that was missed in a night would be taken for one that hangs."""
    one = journal(tmp_path, 1 << 25)
    many = [(0, b"key:%d" % number) for number in range(20_000)]
    one.add(many)
    one.begin_another()
    one.add(many[:10])
    turns = 0

    def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            let_others_run()

    other = gevent.spawn(count)
    try:
        assert list(one.read_all(sorted(tmp_path.iterdir()))) == many
    finally:
        other.kill()
    assert turns >= 20


def test_another_board_finds_the_files_that_are_there(tmp_path: Path) -> None:
    for _ in range(3):
        one = journal(tmp_path)
        one.begin_another()
        one.add([(0, b"a")])
    last = journal(tmp_path)
    before = last.begin_another()
    assert len(before) == len(list(tmp_path.iterdir())) > 0
    last.add([(0, b"b")])
    assert not any((0, b"b") in last.read(path) for path in before)


@pytest.mark.parametrize("cut", range(1, 12))
def test_what_comes_after_a_torn_record_is_left_alone(tmp_path: Path, cut: int) -> None:
    one = journal(tmp_path)
    one.add([(0, b"whole")])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:-cut])
    assert list(one.read(path)) == [(0, b"whole")]
    path.write_bytes(whole[:-1] + b"?" + whole)
    assert list(one.read(path)) == []


def test_it_does_not_grow_beyond_its_bound(tmp_path: Path) -> None:
    one = journal(tmp_path, 100)
    one.add([(0, b"x" * 40)])
    with pytest.raises(Full, match="100 bytes"):
        one.add([(0, b"y" * 60)])
    assert everything(one) == [(0, b"x" * 40)]


def test_a_folder_that_is_gone_is_full(tmp_path: Path) -> None:
    one = journal(tmp_path / "gone")
    with pytest.raises(Full, match="No such file"):
        one.add([(0, b"x")])
