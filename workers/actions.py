"""What an operator asks of one worker: a table of verbs, each answered with one message.

    command (id, verb, args) ──► reply (id, data); data has `error` when it could not be done
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent

from hyper_proxy.common import log
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.frames import Message
from workers.port import OperablePort
from workers.stacks import describe_greenlets

Arguments = dict[str, Any]

# These wait for the disk: the pipe is read on meanwhile.
WAITING = frozenset({"reopen_logs"})


class Actions:
    """Answers the commands that come through the pipe (supervisor/errands.py asks). `reopen_log` waits until the log
    file is opened anew; its result is why the system refuses, or ""."""

    def __init__(
        self, engine: OperablePort, reopen_log: Callable[[], str], answer: Callable[[Message], object]
    ) -> None:
        self._engine = engine
        self._answer = answer
        self._verbs: dict[str, Callable[[Arguments], dict[str, Any]]] = {
            "overrule": self._overrule,
            "clients": lambda args: engine.list_clients(args["instance"], args["limit"]),
            "disconnect": lambda args: {"closed": engine.disconnect(args["address"])},
            "stack": lambda args: {"text": describe_greenlets()},
            "reopen_logs": lambda args: {"error": error} if (error := reopen_log()) else {},
        }

    def command(self, message: Message) -> None:
        """Does it and answers, at once or when it is done."""
        if message["verb"] in WAITING:
            gevent.spawn(self._obey, message)
        else:
            self._obey(message)

    def _obey(self, message: Message) -> None:
        try:
            data = self._verbs[message["verb"]](message["args"])
        except HyperProxyError as error:
            data = {"error": str(error)}
        self._answer({"type": "reply", "id": message["id"], "data": data})

    def overrule(self, layer: Arguments) -> None:
        """Puts the operators' layer into force (supervisor/overrides.py): all of it, whatever was before."""
        log.overrule(layer["log_level"])
        self._engine.overrule(layer["nodes"], layer["rooms"])

    def _overrule(self, layer: Arguments) -> dict[str, Any]:
        self.overrule(layer)
        return {}
