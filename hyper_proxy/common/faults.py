"""What happens to a fault in the proxy itself: its traceback goes to standard error, it is logged in one line, counted,
and costs one client at most."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from gevent import GreenletExit, get_hub

from hyper_proxy.common import log


class Faults:
    """One for the process. count: errors that nobody has foreseen, in greenlets and callbacks of the event loop."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self) -> None:
        """Notice those of this thread's event loop; gevent alone would print them, where no operator may look, and
        end the process where one is SystemExit, KeyboardInterrupt or SystemError."""
        hub: Any = get_hub()
        hub.SYSTEM_ERROR = ()
        hub.NOT_ERROR = (GreenletExit,)
        handle = hub.handle_error

        def note(
            context: object, kind: type[BaseException], value: BaseException | None, trace: TracebackType | None
        ) -> None:
            if not issubclass(kind, hub.NOT_ERROR):
                self.count += 1
                log.error("worker.fault", error=f"{kind.__name__}: {value}", at=_place(trace))
            handle(context, kind, value, trace)

        hub.handle_error = note


FAULTS = Faults()


def show(where: object) -> None:
    """Show the exception that is being handled, with its traceback and where it happened."""
    get_hub().handle_error(where, *sys.exc_info())


def _place(trace: TracebackType | None) -> str:
    """File and line where it was raised; empty when that is not known."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
