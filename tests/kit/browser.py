"""A real browser without a window: what a page becomes in it, and what it complains of."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60
# Nothing is loaded but the page: no update, no metrics, no first visit.
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--no-default-browser-check",
    "--enable-logging=stderr",
)  # fmt: skip
_CONSOLE = re.compile(r':CONSOLE[(:]\d+\)?\] "(.*)", source: ')


@dataclass(frozen=True, slots=True)
class Shown:
    """The document after its scripts have run, and the lines of the browser's console."""

    dom: str
    console: list[str]

    def section(self, name: str) -> str:
        """The markup of one section by its id; "" when there is none."""
        match = re.search(rf'<section id="{name}".*?</section>', self.dom, re.DOTALL)
        return match[0] if match else ""

    def rows(self, name: str) -> int:
        """Rows of the tables' bodies in a section."""
        return sum(body.count("<tr") for body in re.findall(r"<tbody>.*?</tbody>", self.section(name), re.DOTALL))


def show(url: str, *options: str, seconds: float = 1.0) -> Shown:
    """Opens an address and lets so much time pass, as the page sees it. Raises FileNotFoundError without a browser."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise FileNotFoundError("chromium is missing: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        budget = f"--virtual-time-budget={seconds * 1000:.0f}"
        command = [program, *QUIET, f"--user-data-dir={profile}", budget, *options, "--dump-dom", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert "<html" in done.stdout, f"the browser shows nothing:\n{done.stderr[-3000:]}"
    return Shown(done.stdout, _CONSOLE.findall(done.stderr))
