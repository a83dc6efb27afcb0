"""What all tests of the configuration have in common."""

from __future__ import annotations

import resource

import pytest


@pytest.fixture(autouse=True)
def _files_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings must not depend on the limits of the machine that runs the tests."""
    monkeypatch.setattr("resource.getrlimit", lambda which: (1024, resource.RLIM_INFINITY))
