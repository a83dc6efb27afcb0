"""What became of a reload: the same record in the log, in /stats, in the metrics and in the answer of `ctl reload`."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.errors import Finding
from hyper_proxy.config.codes import WARNING

# A finding about a value begins with its path: "instance[0].level[1].hash: unknown ...".
_KEY = re.compile(r"([a-z_]\w*(?:\[\d+\])?(?:\.[\w-]+(?:\[\d+\])?)*): ")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`generation` is the one that serves now; `at` is in seconds since 1970. Of a refusal, `error` is all findings,
    one a line, and file, line and key are those of the first; `invalid` says that the file itself is at fault.
    `warnings` are what the file may be used with all the same."""

    ok: bool
    generation: int
    at: float
    summary: str = ""
    error: str = ""
    file: str = ""
    line: int = 0
    key: str = ""
    invalid: bool = False
    warnings: tuple[str, ...] = ()

    def report(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def write_log(self) -> None:
        """One line of the log."""
        if self.ok:
            log.info("reload.done", generation=self.generation, summary=self.summary)
        else:
            place = {"file": self.file, "line": self.line, "key": self.key} if self.file else {}
            log.error("reload.refused", generation=self.generation, error=self.error, **place)


def accepted(generation: int, summary: str, warnings: tuple[str, ...] = ()) -> Verdict:
    """The configuration serves."""
    return Verdict(ok=True, generation=generation, at=time.time(), summary=summary, warnings=warnings)


def refused(generation: int, error: str, *, file: str = "", line: int = 0, key: str = "") -> Verdict:
    """The old configuration goes on serving, for a reason that is not the file's form."""
    return Verdict(ok=False, generation=generation, at=time.time(), error=error, file=file, line=line, key=key)


def warnings_of(findings: list[Finding]) -> tuple[str, ...]:
    """The warnings among findings, one a line of text."""
    return tuple(str(finding) for finding in findings if finding.level == WARNING)


def found(generation: int, findings: list[Finding]) -> Verdict:
    """The old configuration goes on serving, since the file has findings; the first error gives the place."""
    errors = [finding for finding in findings if finding.level == "error"] or findings
    first = errors[0]
    match = _KEY.match(first.message)
    return Verdict(
        ok=False,
        generation=generation,
        at=time.time(),
        error="\n".join(str(finding) for finding in errors),
        file=first.file,
        line=first.line,
        key=match[1] if match else "",
        invalid=True,
        warnings=warnings_of(findings),
    )
