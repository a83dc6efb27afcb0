"""The form of the log, and its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyper_proxy.common.log import DirectSink, Log, LogFile, format_line


def test_a_line_has_time_level_event_and_fields() -> None:
    line = format_line(0.5, "info", "worker.ready", {"slot": 0, "boot_s": 0.25}, " pid=7")
    assert line == b"1970-01-01T00:00:00.500Z info worker.ready slot=0 boot_s=0.25 pid=7\n"


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
    assert format_line(0, "info", "e", {"k": value}).decode().split(" k=")[1] == written + "\n"


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


def test_a_full_disk_is_counted() -> None:
    sink = DirectSink(LogFile("/dev/full"))
    sink.put(b"x\n")
    assert sink.lost == 1
    sink.file.close()
