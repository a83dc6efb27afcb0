"""Fleets with plug-ins: files in the folder of the configuration, as an operator puts them there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
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
def start(folder: Path, start_fleet: Start) -> Start:
    """`start(config)`: a fleet whose folder has the examples in it."""
    return start_fleet
