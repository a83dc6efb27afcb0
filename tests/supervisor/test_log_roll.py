"""Rolling the log: by a clock that the test sets, and in a real fleet."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from hyper_proxy.common import log
from hyper_proxy.config.model import Log
from supervisor.log_roll import LogRoller
from supervisor.loop import Loop
from tests.kit.wait import wait_for
from tests.supervisor.conftest import Client, Connect, StandInFleet, StartStandIn
from tests.supervisor.standin import LINES

NOON = datetime(2026, 3, 1, 12, 0, 0).timestamp()
HOUR_S = 3600.0
MAX_BYTES = 1000


class Rig:
    """A roller over a log of its own; `now` is its clock, `told` counts what the other processes would hear."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.path = folder / "proxy.log"
        self.settings = Log(file=str(self.path), max_bytes=MAX_BYTES)
        self.set(**settings)
        self.now = NOON
        self.told = 0
        log.configure("info", log.DirectSink(log.LogFile(self.settings.file)))
        self.roller = LogRoller(lambda: self.settings, self._tell, lambda: self.now)

    def set(self, **settings: object) -> None:
        """What a reload would change."""
        self.settings = replace(self.settings, **settings)  # type: ignore[arg-type]

    def _tell(self) -> None:
        self.told += 1

    def round(self, text: str) -> None:
        """Logs more than a file may have, and checks."""
        log.info("test.line", text=text, pad="x" * MAX_BYTES)
        self.roller.check()

    def files(self) -> dict[str, list[str]]:
        """What follows FILE in the name of each file -> the texts that are in it, in their order."""
        found = sorted(self.path.parent.glob("proxy.log*"))
        return {path.name[len("proxy.log") :]: texts(path) for path in found if path.is_file()}

    def events(self, name: str) -> int:
        """How often it was logged, over all files."""
        return sum(path.read_text().count(f" {name} ") for path in self.path.parent.iterdir() if path.is_file())


def texts(path: Path) -> list[str]:
    """Of the lines that the tests log."""
    return re.findall(r"test\.line text=(\S+)", path.read_text())


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """The process's log is as before afterwards."""
    before = log.sink()
    yield
    if log.sink() is not before:
        log.sink().file.close()
    log.configure("info", before)


def test_a_file_that_is_large_enough_gets_a_number(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for text in ("a", "b", "c"):
        rig.round(text)
    assert rig.files() == {"": [], ".1": ["c"], ".2": ["b"], ".3": ["a"]}
    assert rig.told == 3
    assert f"log.rolled to={rig.path}.1 bytes=" in rig.path.read_text()


def test_a_small_file_stays(tmp_path: Path) -> None:
    rig = Rig(tmp_path, max_bytes=2 * MAX_BYTES)
    rig.round("a")
    assert rig.files() == {"": ["a"]}
    assert rig.told == 0


def test_no_more_than_keep_files_are_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path, keep=2)
    for text in "abcdef":
        rig.round(text)
    assert rig.files() == {"": [], ".1": ["f"], ".2": ["e"]}


def test_a_descriptor_that_was_not_reopened_writes_into_the_rolled_file(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    worker = log.LogFile(str(rig.path))
    rig.round("a")
    os.write(worker.fd, b"late\n")
    worker.reopen()
    os.write(worker.fd, b"new\n")
    worker.close()
    assert (tmp_path / "proxy.log.1").read_text().endswith("late\n")
    assert rig.path.read_text().endswith("new\n")


def test_keep_0_empties_the_file_where_it_is(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.round("a")
    rig.set(keep=0)
    worker = log.LogFile(str(rig.path))
    rig.round("b")
    os.write(worker.fd, b"test.line text=c\n")
    worker.close()
    assert rig.files() == {"": ["c"]}


@pytest.mark.parametrize(
    ("roll", "files"),
    [
        ("hour", {"": ["e"], ".20260301-12": ["a", "b"], ".20260301-13": ["c"], ".20260301-23": ["d"]}),
        ("day", {"": ["e"], ".20260301": ["a", "b", "c", "d"]}),
    ],
)
def test_a_period_of_the_local_clock_gives_its_name(tmp_path: Path, roll: str, files: dict[str, list[str]]) -> None:
    rig = Rig(tmp_path, roll=roll)
    for clock, text in (("12:00:00", "a"), ("12:59:59", "b"), ("13:00:00", "c"), ("23:59:59", "d"), ("24:00:00", "e")):
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        rig.now = NOON + (hours - 12) * HOUR_S + minutes * 60 + seconds
        rig.roller.check()
        rig.round(text)
    assert rig.files() == files
    assert rig.told == len(files) - 1


def test_the_file_of_an_earlier_run_belongs_to_the_day_of_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "proxy.log"
    path.write_text("test.line text=a\n")
    os.utime(path, (NOON - 24 * HOUR_S, NOON - 24 * HOUR_S))
    rig = Rig(tmp_path, roll="day")
    rig.roller.check()
    assert rig.files() == {"": [], ".20260228": ["a"]}


def test_a_period_without_a_line_leaves_no_file(tmp_path: Path) -> None:
    rig = Rig(tmp_path, roll="hour")
    rig.now += HOUR_S
    rig.roller.check()
    rig.round("a")
    rig.now += HOUR_S
    rig.roller.check()
    assert rig.files() == {"": [], ".20260301-13": ["a"]}


def test_a_clock_that_was_set_back_overwrites_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, roll="hour")
    for hours, text in ((0, "a"), (1, "b"), (0, "c"), (1, "d"), (2, "e")):
        rig.now = NOON + hours * HOUR_S
        rig.roller.check()
        log.info("test.line", text=text)
    assert rig.files() == {"": ["e"], ".20260301-12": ["a"], ".20260301-13": ["b", "c", "d"]}
    assert rig.events("log.not_rolled") == 1


def test_dated_files_beyond_keep_are_deleted_and_strangers_are_not(tmp_path: Path) -> None:
    strangers = [".20250101.gz", "-20250101", ".2025010", ".old", ".2025"]
    for name in strangers:
        (tmp_path / f"proxy.log{name}").write_text("")
    rig = Rig(tmp_path, roll="hour", keep=2)
    for hour in range(5):
        rig.now = NOON + hour * HOUR_S
        rig.round(str(hour))
    assert rig.files().keys() - set(strangers) == {"", ".20260301-14", ".20260301-15"}
    assert set(strangers) < rig.files().keys()


def test_a_reload_changes_what_is_rolled_and_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for text in "abcd":
        rig.round(text)
    rig.set(keep=3)
    rig.roller.check()
    assert rig.files() == {"": [], ".1": ["d"], ".2": ["c"], ".3": ["b"]}
    rig.set(roll="day")
    rig.round("e")
    rig.now += 24 * HOUR_S
    rig.roller.check()
    assert rig.files() == {"": [], ".1": ["d"], ".2": ["c"], ".20260301": ["e"]}
    rig.set(roll="none", keep=0)
    rig.round("f")
    assert rig.files()[""] == ["f"]
    assert len(rig.files()) == 4


def test_a_file_that_was_removed_or_renamed_is_opened_anew(tmp_path: Path) -> None:
    rig = Rig(tmp_path, max_bytes=1_000_000)
    rig.path.unlink()
    rig.roller.check()
    rig.round("a")
    rig.path.rename(tmp_path / "proxy.log-old")
    rig.path.write_text("")
    rig.roller.check()
    rig.round("b")
    assert rig.files() == {"": ["b"], "-old": ["a"]}
    assert rig.told == 2


def test_a_master_that_leaves_follows_the_one_that_serves(tmp_path: Path) -> None:
    rig = Rig(tmp_path, keep=1)
    rig.round("a")
    rig.roller.follow()
    rig.round("b")
    rig.round("c")
    assert rig.files() == {"": ["b", "c"], ".1": ["a"]}
    rig.path.rename(f"{rig.path}.1")
    rig.roller.check()
    rig.round("d")
    assert rig.files() == {"": ["d"], ".1": ["b", "c"]}
    assert rig.told == 2


def test_what_cannot_be_renamed_is_told_once_and_tried_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, keep=1)
    obstacle = tmp_path / "proxy.log.1"
    obstacle.mkdir()
    for text in "abc":
        rig.round(text)
    assert rig.files() == {"": ["a", "b", "c"]}
    assert rig.events("log.not_rolled") == 1
    obstacle.rmdir()
    rig.roller.check()
    assert rig.files() == {"": [], ".1": ["a", "b", "c"]}


def test_what_cannot_be_deleted_is_told_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, keep=2)
    for text in "abc":
        rig.round(text)
    (tmp_path / "proxy.log.3").mkdir()
    for text in "def":
        rig.round(text)
    assert rig.files() == {"": [], ".1": ["f"], ".2": ["e"]}
    assert rig.events("log.not_deleted") == 1


def test_a_folder_that_is_gone_is_told_once_and_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    rig = Rig(folder)
    with rig.path.open() as removed:
        shutil.rmtree(folder)
        for text in "abc":
            rig.round(text)
        assert removed.read().count("log.not_rolled") == 1
    assert rig.told == 0
    folder.mkdir()
    rig.roller.check()
    rig.round("d")
    assert rig.files() == {"": [], ".1": ["d"]}


def test_a_symbolic_link_stays_and_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("")
    (tmp_path / "proxy.log").symlink_to(tmp_path / "target")
    rig = Rig(tmp_path)
    rig.round("a")
    rig.round("b")
    assert texts(tmp_path / "target") == ["a", "b"]
    assert (tmp_path / "target").read_text().count("log.not_rolled") == 1
    assert rig.path.is_symlink()


@pytest.mark.parametrize("path", ["", "/dev/null"])
def test_what_is_no_file_is_left_alone(path: str) -> None:
    log.configure("error", log.DirectSink(log.LogFile(path)))
    told: list[str] = []
    roller = LogRoller(lambda: Log(file=path, max_bytes=0), lambda: told.append("reopen"))
    roller.check()
    assert told == []


def test_it_checks_every_second(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    loop = Loop()
    started = time.monotonic()
    rig.roller.run(loop)
    log.info("test.line", text="a", pad="x" * MAX_BYTES)
    while not rig.told:
        loop.turn()
    assert 0.9 < time.monotonic() - started < 3
    loop.close()


def test_a_fleet_rolls_and_no_line_of_any_process_is_lost(
    start_standin: StartStandIn, connect: Connect, tmp_path: Path
) -> None:
    path = tmp_path / "logs" / "proxy.log"
    first = Path(f"{path}.1")
    path.parent.mkdir()
    section = f'\n[log]\nfile = "{path}"\nmax_bytes = "64KB"\nkeep = '
    fleet = start_standin(workers=2, extra=section + "9")
    clients = one_for_each_worker(fleet, connect)
    asked: list[int] = []

    def write_until(there: Callable[[], bool]) -> bool:
        asked.append(len(asked))
        for client in clients:
            client.send(f"log {asked[-1]}")
            client.receive()
        return there()

    for number in (1, 2, 3):
        wait_for(partial(write_until, Path(f"{path}.{number}").exists), f"roll {number}")
    everything = Counter({(slot, number): LINES for slot in "01" for number in asked})
    wait_for(lambda: written(path.parent) == everything, "every line is there, once")
    fleet.change(extra=section + "1")
    assert fleet.reload().accepted
    wait_for(lambda: rolled(path.parent) == [first.name], "the others are deleted")
    before = first.stat().st_ino
    wait_for(partial(write_until, lambda: first.stat().st_ino != before), "one more roll")
    assert rolled(path.parent) == [first.name]
    wait_for(lambda: open_logs(fleet, path.parent) == [str(path)] * 4, "master, workers and sidecar have the new file")


def open_logs(fleet: StandInFleet, folder: Path) -> list[str]:
    """The logs that the processes of the fleet have open."""
    return [str(file) for file in fleet.open_files() if file.parent == folder]


def one_for_each_worker(fleet: StandInFleet, connect: Connect) -> list[Client]:
    """A client of worker 0 and one of worker 1."""
    found: dict[str, Client] = {}
    while len(found) < 2:
        client = connect(fleet)
        found.setdefault(client.ask()[0], client)
    return list(found.values())


def rolled(folder: Path) -> list[str]:
    """The names of the rolled files."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".log")


def written(folder: Path) -> Counter[tuple[str, int]]:
    """How often each line of the stand-in is there, by slot and number; incomplete when a roll comes between."""
    line = re.compile(r" standin\.said number=(\d+) pad=x+ slot=(\d+) ")
    counts: Counter[tuple[str, int]] = Counter()
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            counts.update((found[2], int(found[1])) for found in line.finditer(path.read_text()))
    return counts
