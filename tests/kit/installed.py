"""A program as it lies on a disk, and may be replaced by another one while it runs: for upgrades."""

from __future__ import annotations

import sys
from pathlib import Path

REAL = """
import sys
from hyper_proxy.cli.main import main
sys.exit(main())
"""

STAND_IN = """
import sys
from hyper_proxy.cli import main, serve
from tests.supervisor.standin import enter_worker
serve.enter_worker = enter_worker
sys.exit(main.main())
"""

BROKEN = {
    "does not compile": ("def main(:\n", "exit code 1: its traceback is on standard error"),
    "lacks a module": ("import no_such_module\n", "exit code 1: its traceback is on standard error"),
    "ends at once": ("raise SystemExit(7)\n", "exit code 7"),
    "crashes": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "signal SEGV"),
    "never gets ready": ("import signal\nsignal.pause()\n", "it was not ready within"),
}
"""New versions of which nothing comes, and what is said of them."""


class Installed:
    """`command` runs what is installed in `folder` at that moment."""

    def __init__(self, folder: Path, text: str) -> None:
        self.file = folder / "program.py"
        self.command = [sys.executable, str(self.file)]
        self.install(text)

    def install(self, text: str) -> None:
        """Replaces it, as a package manager does."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.file)
