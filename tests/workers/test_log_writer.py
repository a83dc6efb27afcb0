"""The queue between a worker's log calls and the disk."""

from __future__ import annotations

import os
from pathlib import Path

import gevent
import pytest

from hyper_proxy.common import log
from hyper_proxy.common.log import LogFile
from workers.log_writer import MAX_BYTES, QueueSink

LINE = b"x" * 255 + b"\n"


def test_lines_are_written_in_their_order(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    gevent.spawn(sink.write_all)
    for number in range(1000):
        sink.put(b"%d\n" % number)
    assert sink.flush(5)
    assert (tmp_path / "a.log").read_text().split() == [str(number) for number in range(1000)]


def test_what_does_not_fit_is_counted_and_reported(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    most, left = divmod(MAX_BYTES, len(LINE))
    assert not left
    for _ in range(most + 7):
        sink.put(LINE)
    gevent.spawn(sink.write_all)
    assert sink.flush(5)
    lines = (tmp_path / "a.log").read_text().splitlines()
    assert len(lines) == most + 1
    assert lines[-1].endswith("error log.lost lines=7")


def test_what_waits_is_bounded_in_bytes_too(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    large = b"x" * (MAX_BYTES // 4 - 1) + b"\n"
    for _ in range(6):
        sink.put(large)
    assert sink.lost == 2
    gevent.spawn(sink.write_all)
    assert sink.flush(5)
    sink.put(b"fits again\n")
    assert sink.flush(5)
    assert sink.lost == 2
    assert (tmp_path / "a.log").stat().st_size > MAX_BYTES


def test_another_file_takes_over_between_lines(tmp_path: Path) -> None:
    first = LogFile(str(tmp_path / "a.log"))
    sink = QueueSink(first)
    gevent.spawn(sink.write_all)
    sink.put(b"one\n")
    assert sink.flush(5)
    sink.move_to(str(tmp_path / "b.log"))
    sink.put(b"two\n")
    assert sink.flush(5)
    assert (tmp_path / "a.log").read_text() == "one\n"
    assert (tmp_path / "b.log").read_text() == "two\n"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(first.fd)


def test_another_file_takes_over_without_a_line(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    gevent.spawn(sink.write_all)
    gevent.idle()
    sink.move_to(str(tmp_path / "b.log"))
    assert sink.path == str(tmp_path / "b.log")
    assert sink.flush(5)
    assert sink.file.path == sink.path
    assert (tmp_path / "b.log").exists()


def test_a_file_that_has_not_taken_over_yet_is_the_one_to_open_anew(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    sink.move_to(str(tmp_path / "b.log"))
    sink.reopen()
    sink.put(b"line\n")
    gevent.spawn(sink.write_all)
    assert sink.flush(5)
    assert (tmp_path / "b.log").read_text() == "line\n"
    assert (tmp_path / "a.log").read_text() == ""


def test_a_renamed_file_is_let_go(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    gevent.spawn(sink.write_all)
    (tmp_path / "a.log").rename(tmp_path / "a.log.1")
    sink.reopen()
    sink.put(b"line\n")
    assert sink.flush(5)
    assert (tmp_path / "a.log").read_text() == "line\n"
    assert (tmp_path / "a.log.1").read_text() == ""


def test_a_file_that_cannot_be_opened_leaves_the_log_where_it_is(tmp_path: Path) -> None:
    sink = QueueSink(LogFile(str(tmp_path / "a.log")))
    before = log.sink()
    log.configure("info", sink)
    try:
        gevent.spawn(sink.write_all)
        sink.move_to(str(tmp_path / "missing" / "b.log"))
        assert sink.flush(5)
    finally:
        log.configure("info", before)
    assert f"error log.not_opened file={tmp_path}/missing/b.log" in (tmp_path / "a.log").read_text()


def test_a_disk_that_refuses_does_not_stop_the_worker() -> None:
    sink = QueueSink(LogFile("/dev/full"))
    gevent.spawn(sink.write_all)
    sink.put(b"lost\n")
    assert sink.flush(5)
    assert sink.lost == 1


def test_who_does_not_read_delays_no_line_and_hears_how_many_are_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.fifo")
    reader = os.open(tmp_path / "a.fifo", os.O_RDONLY | os.O_NONBLOCK)
    sink = QueueSink(LogFile(str(tmp_path / "a.fifo")))
    gevent.spawn(sink.write_all)
    put = 0
    while sink.lost < 10:
        for _ in range(1000):
            sink.put(LINE)
        put += 1000
        gevent.idle()
    got = b""
    os.set_blocking(reader, True)
    while not got.endswith(b"\n") or b"log.lost" not in got[-200:]:
        got += gevent.get_hub().threadpool.apply(os.read, (reader, 1 << 20))
    os.close(reader)
    lines = got.splitlines(keepends=True)
    assert set(lines[:-1]) == {LINE}
    assert lines[-1].endswith(b"error log.lost lines=%d\n" % sink.lost)
    assert len(lines) - 1 + sink.lost == put
