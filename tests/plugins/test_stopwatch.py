"""Functions of a protocol that run and run: which are ended, and which only look so."""

from __future__ import annotations

from pathlib import Path

from tests.kit.ports import free_port
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_faults import line_of
from tests.plugins.texts import ECHO, config, instance

MAP = """
        if part == b"wait":
            WAITS.set()
            GATE.wait()
            while GATE.is_set(): pass
        if part == b"open":
            WAITS.wait()
            GATE.set()
        if part == b"busy":
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                sum(range(100_000))
                time.sleep(0)
        return part
"""
HEAD = """import gevent
from gevent.event import Event

WAITS, GATE = Event(), Event()
"""
GATED = ECHO.replace("import gevent\n", HEAD).replace("\n        return part\n", MAP)


def test_one_that_waits_first_is_ended_whatever_others_call_meanwhile(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(GATED)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port), proxy="hang_timeout_s = 4"))
    before = fleet.worker_pids()
    with Lines(port) as client, Lines(port) as other:
        client.send(b"wait\none\n")
        assert other.ask(b"open\n") == [b"open"]
        assert client.lines(2) == [b"! plugin: plug-in 'echo.py' failed in map", b"one"]
    fleet.wait_log("it has not come back within 1 s")
    assert f"at={folder / 'echo.py'}:{line_of(GATED, 'while GATE')} " in fleet.read_log()
    assert fleet.worker_pids() == before


def test_one_that_runs_long_but_lets_others_run_is_not_ended(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(GATED)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    with Lines(port) as client, Lines(port) as other:
        client.send(b"busy\n")
        assert other.ask(b"one\n") == [b"one"]
        assert client.lines(1) == [b"busy"]
    assert "plugin.failed" not in fleet.read_log()
