"""A fault in the code of a plug-in: which plug-in, which of its functions, and the line of its file.

The client is told the first two, in its protocol; the log has all of it. It costs the request in which it happened.
To those who ask several servers or levels it is the failure of a server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

from hyper_proxy.common import log
from hyper_proxy.common.errors import BackendError, HyperProxyError

SHOWN = 80  # characters of a wrong answer

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose code it is: the plug-in's name, and its file or folder."""

    name: str
    origin: str


class PluginError(BackendError):
    """Code of a plug-in has failed, or does not keep to the interface. `at` is FILE:LINE, "" where no line is known."""

    def __init__(self, owner: Owner, function: str, reason: str, at: str = "") -> None:
        HyperProxyError.__init__(self, f"plug-in '{owner.name}' failed in {function}")
        self.instance = ""  # whoever calls the function knows it
        self.node = owner.name
        self.kind = "plugin"
        self.owner = owner
        self.function = function
        self.reason = reason
        self.at = at

    @property
    def in_full(self) -> str:
        """For who may change the code: what is wrong, and where."""
        return f"{self}: {self.reason}{f' ({self.at})' if self.at else ''}"

    def report(self, instance: str) -> None:
        """Log it."""
        log.error(
            "plugin.failed", plugin=self.owner.name, function=self.function, instance=instance, at=self.at,
            error=self.reason,
        )  # fmt: skip


def guarded(owner: Owner, function: str, call: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """What `call` of a plug-in returns. Its errors of the project's tree pass, all others become PluginError."""
    try:
        return call(*args, **named)
    except HyperProxyError:
        raise
    except BaseException as error:  # noqa: BLE001  raised again as a fault of the plug-in: SystemExit and GreenletExit, too
        fault = PluginError(owner, function, describe(error), place_of(error, owner))
        fault.__cause__ = error
    raise fault


def describe(error: BaseException) -> str:
    """ "ValueError: what it says"."""
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # noqa: BLE001  its words are made by code of the plug-in, too
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place_of(error: BaseException, owner: Owner) -> str:
    """FILE:LINE of the last line of the plug-in that has led to the error; "" if it was none of its own."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if _is_of(trace.tb_frame, owner):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def place_in(frame: FrameType | None, owner: Owner) -> str:
    """FILE:LINE of the innermost line of the plug-in that is running there; "" when there is none."""
    while frame is not None and not _is_of(frame, owner):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def place_of_function(function: object, owner: Owner) -> str:
    """FILE:LINE where it is defined; the plug-in's file when that is not known."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if isinstance(code, CodeType) else owner.origin


def nonsense(owner: Owner, function: str, made_by: object, wanted: str, value: object) -> PluginError:
    """The fault of a function, `made_by`, that returns what it must not."""
    reason = f"{wanted} is wanted, not {repr(value)[:SHOWN]}"
    return PluginError(owner, function, reason, place_of_function(made_by, owner))


def _is_of(frame: FrameType, owner: Owner) -> bool:
    file = frame.f_code.co_filename
    return file == owner.origin or file.startswith(f"{owner.origin}/")
