"""An error that nobody has foreseen, in a greenlet or in the event loop itself, is counted and logged in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest

from hyper_proxy.common import log
from hyper_proxy.common.faults import Faults
from hyper_proxy.common.log import DirectSink, LogFile


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    before = log.sink()
    file = LogFile(str(tmp_path / "faults.log"))
    log.configure("info", DirectSink(file))
    yield tmp_path / "faults.log"
    log.configure("info", before)
    file.close()


def fail() -> None:
    raise ValueError("not\nforeseen")


def test_faults_are_counted_logged_and_shown(written: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def begin() -> int:
        faults = Faults()
        faults.watch()
        gevent.spawn(fail).join()
        gevent.get_hub().loop.run_callback(fail)
        gevent.spawn(sys.exit, 3).join()
        gevent.spawn(gevent.get_hub().switch).kill()  # is no fault
        gevent.spawn(int).join()
        return faults.count

    def in_a_hub_of_its_own() -> int:
        try:
            return begin()
        finally:
            gevent.get_hub().destroy(destroy_loop=True)

    assert gevent.get_hub().threadpool.apply(in_a_hub_of_its_own) == 3
    first, second, third = written.read_text().splitlines()
    assert ' error worker.fault error="ValueError: not\\nforeseen" at=' in first
    assert "test_faults.py:" in first and "test_faults.py:" in second
    assert ' error worker.fault error="SystemExit: 3" at=' in third
    assert capfd.readouterr().err.count("Traceback") == 3
