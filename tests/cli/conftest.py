"""The file that the tests of `explain` ask about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.explained import CONFIG


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Of the instances of tests/cli/explained.py."""
    path = tmp_path / "x.toml"
    path.write_text(CONFIG)
    return str(path)
