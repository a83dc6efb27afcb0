"""Has all processes open their log files anew, after a rotation, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from supervisor import logs
from supervisor.errands import Errand, Errands
from supervisor.fleet import Fleet

Told = Callable[[str, list[int]], None]
"""Called with what the system refused, and to whom ("" when nothing), and with the workers that are late."""


class Reopening:
    """The order, of whoever gives it: a signal, an operator, the master that has rolled the file."""

    def __init__(self, fleet: Fleet, errands: Errands, tell_sidecar: Callable[[Message], None]) -> None:
        self._fleet = fleet
        self._errands = errands
        self._tell_sidecar = tell_sidecar

    def everyone(self, why: str, told: Told | None = None) -> None:
        """The master's file is opened anew at once, and then those of its children; told(...) follows."""
        path = log.sink().file.path
        refused: dict[str, list[str]] = {}
        if error := logs.reopen():
            refused[error] = ["master"]
        elif path:
            log.info("log.reopened", why=why)

        def done(errand: Errand) -> None:
            for slot, data in sorted(errand.said, key=lambda answer: answer[0].index):
                if error := data.get("error"):
                    refused.setdefault(error, []).append(f"worker {slot.index}")
            if told is not None:
                told(_in_words(path, refused), sorted({slot.index for slot in errand.silent}))

        self.children(done)

    def children(self, done: Callable[[Errand], None] = lambda errand: None) -> None:
        """The workers and the sidecar, of a master that has its own file open already. Each of them logs what the
        system refuses."""
        self._tell_sidecar({"type": "reopen_logs"})
        self._errands.ask(self._fleet.live(), "reopen_logs", {}, done)


def _in_words(path: str, refused: dict[str, list[str]]) -> str:
    if not refused:
        return ""
    reasons = "; ".join(f"{error} ({', '.join(dict.fromkeys(who))})" for error, who in refused.items())
    return f"cannot open {path} anew: {reasons}; the old file stays in use"
