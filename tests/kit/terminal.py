"""A program in a terminal of its own: keys are pressed, and what it draws is waited for.

    with Terminal(["hyper-proxy", "top"]) as terminal:
        terminal.wait("RUNNING")
        terminal.press("q")
        assert terminal.end() == 0
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kit.wait import wait_for

ROWS, COLUMNS = 40, 160
# What moves the cursor and colours: ECMA-48 control sequences.
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


# As a shell without a terminal starts a command behind which there is an "&".
IN_THE_BACKGROUND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


class Terminal:
    """`drawn` is everything it wrote, with control sequences; `text` that without them, since the last `wait`."""

    def __init__(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.settings = self.read_settings()
        self.drawn = ""
        self._seen = 0
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command], cwd=folder, env={**os.environ, "TERM": "xterm", **environment},
            stdin=self._theirs, stdout=self._theirs, stderr=self._theirs,
        )  # fmt: skip

    def read_settings(self) -> list[Any]:
        """How the terminal treats keys: what a program changes, it must change back."""
        return termios.tcgetattr(self._theirs)

    def press(self, keys: str) -> None:
        """Keys, one after the other; what is drawn from now on can be waited for."""
        self._seen = len(self.drawn)
        os.write(self._ours, keys.encode())

    @property
    def text(self) -> str:
        """What was drawn since keys were pressed."""
        while select.select([self._ours], [], [], 0)[0]:
            self.drawn += os.read(self._ours, 65536).decode(errors="replace")
        return SEQUENCE.sub("", self.drawn[self._seen :])

    def wait(self, text: str, timeout_s: float = 15.0) -> None:
        """Waits until it has drawn this."""
        wait_for(lambda: text in self.text, f"{text!r} on the screen", timeout_s)

    def end(self, timeout_s: float = 10.0) -> int:
        """Waits for the program's end; its exit status."""
        wait_for(lambda: self.text is not None and self.process.poll() is not None, "it ends", timeout_s)
        return self.process.returncode

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if kind is not None:
            print(f"--- on the screen\n{self.text[-4000:]}")
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)
