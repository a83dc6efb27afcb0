"""Fleets with plug-ins: files in the folder of the configuration, as an operator puts them there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.fleet import ROOT, Fleet

EXAMPLES = ROOT / "etc/examples/plugins"

Start = Callable[..., Fleet]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a configuration, with the examples in it."""
    for name in ("toy.py", "folder.py", "locker.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """`start(config)`: a fleet that is ready, stopped at the test's end."""
    fleets: list[Fleet] = []

    def one(config: str) -> Fleet:
        fleet = Fleet(config, folder)
        fleets.append(fleet)
        return fleet

    yield one
    for fleet in fleets:
        fleet.stop()
