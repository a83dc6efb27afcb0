"""What was prepared and did not come into force is given up again."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import gevent
import psutil
import pytest

from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import Config
from hyper_proxy.engine import Engine
from hyper_proxy.storage import sqlite

DEADLINE_S = 10.0


def configuration(file: Path) -> Config:
    """One instance on an embedded storage."""
    return load_text(
        f"""
[[instance]]
name = "a"
protocol = "redis"
listen = ["127.0.0.1:6380"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["{file}"]
""",
        "discard.toml",
    )


def test_preparations_that_are_given_up_leave_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LINGER_S", 0.0)
    engine = Engine(configuration(tmp_path / "a.db"), 0)
    process = psutil.Process()
    serving = engine.fronts["a"].snapshot.storage
    before = process.num_threads()
    for number in range(5):
        engine.discard(engine.prepare(configuration(tmp_path / f"{number}.db")))
    engine.discard(engine.prepare(configuration(tmp_path / "a.db")))
    deadline = monotonic() + DEADLINE_S
    while process.num_threads() > before and monotonic() < deadline:
        gevent.idle()
    assert process.num_threads() == before
    assert serving.get_many([b"key"]) == [None]  # what serves and was prepared again is not given up
    engine.drain(0.0)
    serving.close()
