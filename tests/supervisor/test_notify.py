"""What the service manager is told, datagram by datagram."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyper_proxy.common import log
from supervisor import notify
from supervisor.notify import Notifier
from supervisor.spawn import fork_child
from tests.kit.manager import Manager


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@hyper_proxy-test-{os.getpid()}"
    manager = Manager(address)
    yield manager
    manager.close()


def test_lines_go_in_one_datagram(manager: Manager) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.address})
    notifier.send("READY=1", "STATUS=two words, süß")
    notifier.send("STOPPING=1")
    assert manager.hear().lines == ["READY=1", "STATUS=two words, süß"]
    assert manager.hear().lines == ["STOPPING=1"]


def test_without_a_manager_nothing_happens() -> None:
    notifier = Notifier({"WATCHDOG_PID": "1"})
    notifier.send("READY=1")
    assert notifier.watchdog_s == 0
    assert notifier.for_successor() == {}


def test_a_manager_that_is_gone_costs_a_line_of_the_log(tmp_path: Path) -> None:
    before, path = log.sink(), tmp_path / "a.log"
    log.configure("info", log.DirectSink(log.LogFile(str(path))))
    try:
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).send("READY=1")
    finally:
        log.sink().file.close()
        log.configure("info", before)
    assert "warning notify.failed" in path.read_text()


def test_a_manager_that_does_not_read_holds_nobody_up_for_long(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "SEND_TIMEOUT_S", 0.1)
    notifier = Notifier({"NOTIFY_SOCKET": manager.address})
    started = time.monotonic()
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with filler, pytest.raises(BlockingIOError):
        while True:
            filler.sendto(b"X=1", f"\0{manager.address[1:]}" if manager.address.startswith("@") else manager.address)
    notifier.send("READY=1")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "often"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_watchdog_is_that_of_this_process(environment: dict[str, str], seconds: float) -> None:
    assert Notifier(environment).watchdog_s == seconds


def test_a_successor_gets_what_it_needs() -> None:
    mine = {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    assert Notifier(mine).for_successor() == {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000"}


def test_a_reload_begins_at_a_moment_of_the_monotonic_clock() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    word, stamp = notify.reloading()
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert word == "RELOADING=1"
    assert stamp.startswith("MONOTONIC_USEC=")
    assert before <= int(stamp.partition("=")[2]) <= after


def test_more_time_is_asked_for_in_microseconds() -> None:
    assert notify.extend_timeout(30.5) == "EXTEND_TIMEOUT_USEC=30500000"


def test_a_child_knows_no_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in notify.VARIABLES:
        monkeypatch.setenv(name, "1")
    pid = fork_child("test", lambda: None, lambda: len(set(notify.VARIABLES) & os.environ.keys()))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.environ.keys() >= set(notify.VARIABLES)
