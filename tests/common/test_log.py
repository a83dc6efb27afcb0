"""The form of the log, and its file."""

from __future__ import annotations

import json
import os
import resource
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hyper_proxy.common import log as process_log
from hyper_proxy.common.log import DirectSink, Log, LogFile
from hyper_proxy.common.log_lines import FORMS, JSON, TEXT


def test_a_line_has_time_level_event_and_fields() -> None:
    line = TEXT.line(0.5, "info", "worker.ready", {"slot": 0, "boot_s": 0.25, "pid": 7})
    assert line == b"1970-01-01T00:00:00.500Z info worker.ready slot=0 boot_s=0.25 pid=7\n"


def test_values_without_letters_of_python() -> None:
    line = TEXT.line(0, "info", "e", {"fast": True, "pinned": False, "why": None})
    assert line == b"1970-01-01T00:00:00.000Z info e fast=true pinned=false why=null\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ('a"b', '"a\\"b"'),
        ("a\nb", '"a\\nb"'),
        ("ä", '"ä"'),
    ],
)
def test_a_value_never_breaks_its_line(value: str, written: str) -> None:
    assert TEXT.line(0, "info", "e", {"k": value}).decode().split(" k=")[1] == written + "\n"


def test_what_is_below_the_level_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = Log(DirectSink(LogFile(str(path))))
    log.emit("debug", "hidden", {})
    log.bind({"slot": 3})
    log.emit("error", "shown", {"x": 1})
    assert path.read_text().endswith(" error shown x=1 slot=3\n")
    assert path.read_text().count("\n") == 1


def test_reopening_lets_go_of_a_renamed_file(tmp_path: Path) -> None:
    path, old = tmp_path / "a.log", tmp_path / "a.log.1"
    file = LogFile(str(path))
    sink = DirectSink(file)
    sink.put(b"one\n")
    path.rename(old)
    file.reopen()
    sink.put(b"two\n")
    assert (old.read_text(), path.read_text()) == ("one\n", "two\n")
    file.close()


def test_json_is_one_object_a_line_with_numbers_as_numbers() -> None:
    error = OSError("no\nway")
    fields: dict[str, object] = {"slot": 0, "boot_s": 0.25, "ok": True, "none": None, "error": error, "k": "ä"}
    line = JSON.line(0.5, "error", "worker.ended", fields)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "error",
        "event": "worker.ended",
        "slot": 0,
        "boot_s": 0.25,
        "ok": True,
        "none": None,
        "error": "no\nway",
        "k": "ä",
    }


@pytest.mark.parametrize("form", FORMS)
def test_no_form_fails_for_what_is_no_text(form: str) -> None:
    assert FORMS[form].line(0, "info", "e", {"k": "\udcff"}).endswith(b"\n")


def test_what_is_common_stands_in_each_line_of_each_form(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = Log(DirectSink(LogFile(str(path))))
    log.form = FORMS["json"]
    log.bind({"slot": 3})
    log.emit("info", "shown", {"x": 1})
    row = json.loads(path.read_text())
    assert (row["event"], row["x"], row["slot"]) == ("shown", 1, 3)


def test_a_full_disk_is_counted() -> None:
    sink = DirectSink(LogFile("/dev/full"))
    sink.put(b"x\n")
    assert sink.lost == 1
    sink.file.close()


def test_a_reader_that_sleeps_holds_nobody_up_and_hears_of_it_later(fifo: tuple[Path, int]) -> None:
    path, reader = fifo
    sink = DirectSink(LogFile(str(path)))
    line = b"x" * 99 + b"\n"
    put = 0
    while not sink.lost:
        sink.put(line)
        put += 1
    sink.put(line)
    assert sink.lost == 2
    told = os.read(reader, 1_000_000)
    assert told == line * (put - 1)
    sink.put(line)
    assert os.read(reader, 1_000_000).split(b"\n", 1)[1].endswith(b" error log.lost lines=2\n")
    sink.put(line)
    assert os.read(reader, 1_000_000) == line
    sink.file.close()


def test_a_line_that_a_pipe_took_in_part_is_ended_before_the_next(fifo: tuple[Path, int]) -> None:
    path, reader = fifo
    file = LogFile(str(path))
    long = b"y" * 20 * select.PIPE_BUF + b"\n"
    assert not file.write_at_once(long)
    taken = os.read(reader, 1_000_000)
    assert 0 < len(taken) < len(long)
    assert file.write_at_once(b"next\n")
    assert os.read(reader, 1_000_000) == b"\nnext\n"
    file.close()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_up_in_a_line_leaves_whole_lines_to_all_who_write_there(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    file, other = LogFile(str(path)), LogFile(str(path))
    with room_for(10):
        assert [file.write(b"123456\n") for _ in range(3)] == [True, False, False]
    assert other.write(b"other\n")
    with room_for(24):
        assert file.write_all([memoryview(b"next\n"), memoryview(b"ab\ncdefg\n")]) == 1
    assert other.write(b"more\n")
    file.reopen()
    assert file.write(b"last\n")
    assert path.read_text() == "123456\nother\nnext\nab\nmore\nlast\n"
    for one in (file, other):
        one.close()


def test_a_pipe_that_is_opened_anew_has_still_taken_half_a_line(fifo: tuple[Path, int]) -> None:
    path, reader = fifo
    file = LogFile(str(path))
    assert not file.write_at_once(b"y" * 20 * select.PIPE_BUF + b"\n")
    os.read(reader, 1_000_000)
    file.reopen()
    assert file.write_at_once(b"next\n")
    assert os.read(reader, 1_000_000) == b"\nnext\n"
    file.close()


def test_a_new_file_begins_with_a_whole_line(fifo: tuple[Path, int]) -> None:
    path, _ = fifo
    file = LogFile(str(path))
    assert not file.write_at_once(b"y" * 20 * select.PIPE_BUF)
    path.unlink()
    file.reopen()
    assert file.write_at_once(b"next\n")
    assert path.read_text() == "next\n"
    file.close()


def test_a_log_that_is_not_open_is_counted(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "a.log"))
    sink = DirectSink(file)
    file.close()
    sink.put(b"x\n")
    assert sink.lost == 1


def test_a_pipe_that_nobody_reads_is_no_log(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="No such device or address"):
        LogFile(str(tmp_path / "fifo"))


def test_the_line_about_lost_ones_has_the_form_of_the_others() -> None:
    process_log.set_form("json")
    try:
        assert json.loads(process_log.lost_line(7))["lines"] == 7
    finally:
        process_log.set_form("text")
