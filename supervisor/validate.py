"""Reads and judges a configuration file in a child process: whatever a parser does there, the master lives on.

The child sends its judgement, pickled, through a plain pipe and exits. Both ends are this program at one version and
in one fork, so the form of the pickle is no interface.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from hyper_proxy.common.errors import ConfigError, Finding
from hyper_proxy.config.lines import find_lines
from hyper_proxy.config.load import inspect, read_bytes, read_text, shown_lines
from hyper_proxy.config.model import Config
from hyper_proxy.config.notes import Path, show_path
from hyper_proxy.config.plugin_files import are_current
from supervisor.change import cold_changes, renewing_changes
from supervisor.children import Children
from supervisor.exits import explain_exit
from supervisor.loop import Loop

# Far more than any file needs; whoever waits for the verdict must get one.
VALIDATE_TIMEOUT_S = 10.0
_READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ColdChange:
    """A setting that differs from what is in force and that only a restart can change."""

    line: int
    key: str
    message: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the child found. Exactly one of these: `unchanged`, a `config`, or findings with an error; or `crash`,
    when the child itself did not get that far. `cold` changes take a restart, `renewing` are keys whose change takes
    new workers. `lines` tells the line of a key such as "log.file"."""

    digest: str = ""
    unchanged: bool = False
    config: Config | None = None
    findings: list[Finding] = field(default_factory=list)
    cold: list[ColdChange] = field(default_factory=list)
    renewing: list[str] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    crash: str = ""


def digest_of(path: str) -> str:
    """Identifies the present content of a file; "" when it can't be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except ConfigError:
        return ""


def judge(path: str, in_force: Config, digest_in_force: str) -> Judgement:
    """Reads the file and compares it with what is in force."""
    # Taken before the file is read: if it changes in between, the next reload sees a difference and reads again.
    digest = digest_of(path)
    if digest and digest == digest_in_force and are_current(in_force.plugins):
        return Judgement(digest, unchanged=True)
    config, findings = inspect(path)
    if config is None:
        return Judgement(digest, findings=findings)
    lines = find_lines(read_text(path))
    renewing = renewing_changes(in_force, config)
    cold = [ColdChange(_line(lines, key), show_path(key), text) for key, text in cold_changes(in_force, config)]
    return Judgement(digest, config=config, findings=findings, cold=cold, renewing=renewing, lines=shown_lines(lines))


def _line(lines: dict[Path, int], path: Path) -> int:
    """The line of a key, or of its table; 1 when neither is written down, since a default is in force."""
    return lines.get(path) or lines.get(path[:1]) or 1


class Validation:
    """One child that judges a file; `done` is called once with its judgement."""

    def __init__(self, loop: Loop, children: Children, done: Callable[[Judgement], None]) -> None:
        self._loop = loop
        self._children = children
        self._done = done
        self._output = -1
        self._received = bytearray()
        self._late = False

    def start(self, shed: Callable[[], None], path: str, in_force: Config, digest_in_force: str) -> None:
        """Forks. Raises OSError when the system refuses."""
        self._output, theirs = os.pipe()

        def body() -> int:
            with open(theirs, "wb") as out:
                pickle.dump(judge(path, in_force, digest_in_force), out)
            return 0

        try:
            pid = self._children.fork("reading the configuration", shed, body, self._ended)
        except OSError:
            os.close(self._output)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(self._output, False)
        self._loop.add(self._output, self._read)
        self._timer = self._loop.later(VALIDATE_TIMEOUT_S, lambda: self._expire(pid))

    def _read(self, events: int) -> None:
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._received += data
        else:
            self._close()

    def _close(self) -> None:
        if self._output >= 0:
            self._loop.remove(self._output)
            os.close(self._output)
            self._output = -1

    def _expire(self, pid: int) -> None:
        self._late = True
        self._children.kill(pid, signal.SIGKILL)

    def _ended(self, status: int) -> None:
        while self._output >= 0:
            before = len(self._received)
            self._read(0)
            if self._output >= 0 and len(self._received) == before:
                self._close()
        self._timer.cancel()
        if os.waitstatus_to_exitcode(status) == 0:
            judgement: Judgement = pickle.loads(self._received)
        elif self._late:
            judgement = Judgement(crash=f"reading the file took more than {VALIDATE_TIMEOUT_S:g} s")
        else:
            judgement = Judgement(crash=f"the process that read the file ended with {explain_exit(status)}")
        self._done(judgement)
