"""What the master tells the sidecar: one function per verb, and the table of them."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from typing import Any

from hyper_proxy import __version__
from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from hyper_proxy.config.effective import MASKED, as_json, differences, effective
from supervisor.attendant import Answer, Verb
from supervisor.census import Census
from supervisor.current import Current
from supervisor.events import Events
from supervisor.reload import Reloader
from supervisor.slots import SlotState
from supervisor.stop import Stopper
from supervisor.upgrade import Upgrader


class Desk:
    """Answers the sidecar's questions and passes its orders on."""

    def __init__(
        self, current: Current, census: Census, reloader: Reloader, stopper: Stopper, upgrader: Upgrader, events: Events
    ) -> None:
        self._current = current
        self._census = census
        self._reloader = reloader
        self._stopper = stopper
        self._upgrader = upgrader
        self._started_at_s = time.monotonic()
        path = current.config.path
        self._file = os.path.abspath(path) if path else ""
        self.verbs: dict[str, Verb] = {
            "status": lambda answer, message: answer(self.status()),
            "stats": self._stats,
            "config": lambda answer, message: answer(self.config()),
            "events": lambda answer, message: answer(events.report()),
            "token": lambda answer, message: answer({"token": current.config.admin_token}),
            "reload": self._reload,
        }

    def identity(self) -> dict[str, Any]:
        """Which fleet this is: several may run on a machine, and the default address is that of one of them."""
        return {"fleet": {"file": self._file, "master": os.getpid()}}

    def status(self) -> dict[str, Any]:
        """The state of the fleet and what configuration it runs: everything but counters."""
        workers = self._census.workers()
        ready = any(row["state"] == SlotState.READY.value for row in workers)
        overrides = self._current.overrides
        serving = ("drained" if overrides.drained else "running") if ready else "degraded"
        state = self._stopper.mode or serving
        return self.identity() | {
            "master": {
                "pid": os.getpid(),
                "version": __version__,
                "host": socket.gethostname(),
                "uptime_s": round(time.monotonic() - self._started_at_s, 3),
                "state": state,
                "last_upgrade": self._upgrader.last.report() if self._upgrader.last else None,
                "log_lost": log.sink().lost,
            },
            "workers": workers,
            "leaving": self._census.leaving(),
            "overrides": overrides.report(),
            "config": {
                "path": self._current.config.path,
                "digest": self._current.digest,
                "generation": self._current.generation,
                "loaded_at": self._current.loaded_at,
                "last_success_at": self._reloader.last_success_at,
                "last_reload": self._reloader.last.report(),
            },
        }

    def config(self) -> dict[str, Any]:
        """The configuration in force, as a whole and by key, and what the last reload has changed; secrets masked."""
        current, past = self._current, self._current.past
        rows = effective(current.config, current.lines)
        changes = {
            "from": past.generation if past else 0,
            "to": current.generation,
            "settings": differences(effective(past.config, past.lines), rows) if past else [],
        }
        return self.identity() | {
            "generation": current.generation,
            "path": current.config.path,
            "config": _plain(current.config),
            "settings": as_json(rows),
            "changes": changes,
        }

    def _stats(self, answer: Answer, message: Message) -> None:
        def pulled(silent: list[int]) -> None:
            snapshots = {"silent": silent, "snapshots": self._census.snapshots(), "retired": self._census.ended()}
            answer(self.status() | snapshots)

        self._census.pull(pulled)

    def _reload(self, answer: Answer, message: Message) -> None:
        _write_down(message)
        self._reloader.request(lambda result: answer(result.report() | self.identity()))


def _write_down(message: Message) -> None:
    """What an operator orders is logged before it is done, with who did."""
    log.info("operator.order", verb=message["verb"], who=message.get("who", ""))


def _plain(value: object) -> Any:
    """Records as objects, sets as sorted lists; a field that is not shown (repr=False) is a secret."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            row.name: _plain(getattr(value, row.name)) if row.repr else (MASKED if getattr(value, row.name) else "")
            for row in dataclasses.fields(value)
        }
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(item) for item in value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
