"""ruff and mypy are tests like others; their settings are in pyproject.toml and setup.cfg."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hyper_proxy.build import ROOT

FOLDERS = ("hyper_proxy", "workers", "supervisor", "tests", "etc/examples", "scripts/benchmark")


def python_scripts() -> list[str]:
    """The files of scripts/ that are Python without saying so in their name."""
    files = [path for path in (ROOT / "scripts").iterdir() if path.is_file() and not path.suffix]
    return [str(path.relative_to(ROOT)) for path in sorted(files) if b"python3" in path.read_bytes().split(b"\n", 1)[0]]


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_has_nothing_to_say() -> None:
    run("ruff", "check", "--quiet", "--output-format=concise", ".", *python_scripts())


@pytest.mark.timeout(600)
def test_mypy_has_nothing_to_say() -> None:
    run("mypy", "--no-error-summary", "--scripts-are-modules", *FOLDERS, *python_scripts())
