"""A fault in the code of a plug-in: which plug-in, which of its functions, and the line of its file.

The client is told the first two, in its protocol; the log has all of it, and what the function was asked. It costs the
request in which it happened.
To those who ask several servers or levels it is the failure of a server.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

from hyper_proxy.common import log
from hyper_proxy.common.errors import BackendError, HyperProxyError
from hyper_proxy.common.keyname import digest, readable

SHOWN = 80  # characters of a wrong answer
SHOWN_KEYS = 3  # of those that a function was asked for

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose code it is: the plug-in's name, and its file or folder."""

    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a function was asked: words for everybody; keys, and bytes of a client, for those alone who may see them."""

    text: str = ""
    keys: tuple[bytes, ...] = ()
    data: bytes = b""

    def told(self, show_keys: bool) -> str:
        """ "GET, key 26c7827d889f6da3:5"; "" when nothing is known of it."""
        parts = [self.text] if self.text else []
        if self.keys:
            named = ", ".join(f"b'{readable(key)}'" if show_keys else digest(key) for key in self.keys[:SHOWN_KEYS])
            more = len(self.keys) - SHOWN_KEYS
            parts.append(f"key{'s' if len(self.keys) > 1 else ''} {named}{f' and {more} more' if more > 0 else ''}")
        if self.data and show_keys:
            parts.append(f"b'{readable(self.data)}'")
        return ", ".join(parts)


NOTHING = Question()


class PluginError(BackendError):
    """Code of a plug-in has failed, or does not keep to the interface. `at` is FILE:LINE, "" where no line is known."""

    def __init__(self, owner: Owner, function: str, reason: str, at: str = "", asked: Question = NOTHING) -> None:
        HyperProxyError.__init__(self, f"plug-in '{owner.name}' failed in {function}")
        self.instance = ""  # whoever calls the function knows it
        self.node = owner.name
        self.kind = "plugin"
        self.owner = owner
        self.function = function
        self.reason = reason
        self.at = at
        self.asked = asked

    @property
    def in_full(self) -> str:
        """For who may change the code: what is wrong, and where."""
        return f"{self}{self.asked_for}: {self.reason}{f' ({self.at})' if self.at else ''}"

    @property
    def asked_for(self) -> str:
        """ " with key b'a'": what it was asked, for who may change the code."""
        asked = self.asked.told(show_keys=True)
        return f" with {asked}" if asked else ""

    def report(self, instance: str, show_keys: bool) -> None:
        """Log it."""
        asked = self.asked.told(show_keys)
        log.error(
            "plugin.failed", plugin=self.owner.name, function=self.function, instance=instance,
            at=self.at or self.owner.origin, error=self.reason, **{"asked": asked} if asked else {},
        )  # fmt: skip


def guarded(owner: Owner, function: str, call: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """What `call` of a plug-in returns. Its errors of the project's tree pass, all others become PluginError."""
    try:
        return call(*args, **named)
    except BaseException as error:  # raised again, as a fault of the plug-in: SystemExit and GreenletExit, too
        reason = fault_in(error)
        if not reason:
            raise
        fault = PluginError(owner, function, reason, place_of(error, owner) or place_of_function(call, owner))
        fault.__cause__ = error
    raise fault


def fault_in(error: BaseException) -> str:
    """Why it is a fault of the plug-in that has raised it; "" of an error of the project's tree, which a client can be
    told: a plug-in may have made its class."""
    if not isinstance(error, HyperProxyError):
        return describe(error)
    names = ("kind", "word", "node") if isinstance(error, BackendError) else ("kind", "word")
    try:
        str(error)
        wrong = next((name for name in names if not isinstance(getattr(error, name), str)), "")
    except Exception as unsaid:  # noqa: BLE001  code of the plug-in, too
        return f"{type(error).__name__} can't be told: {describe(unsaid)}"
    return f"{wrong} of {type(error).__name__} is text, not {shown(getattr(error, wrong))}" if wrong else ""


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
    """FILE:LINE where it is defined, of a class that of its `__init__`; the plug-in's file when that is not known."""
    called = getattr(function, "__init__", None) if isinstance(function, type) else function
    code = getattr(inspect.unwrap(called) if callable(called) else None, "__code__", None)
    if not isinstance(code, CodeType) or not _is_file_of(code.co_filename, owner):
        return owner.origin
    return f"{code.co_filename}:{code.co_firstlineno}"


def nonsense(
    owner: Owner, function: str, made_by: object, wanted: str, value: object, asked: Question = NOTHING
) -> PluginError:
    """The fault of a function, `made_by`, that returns what it must not."""
    return PluginError(
        owner, function, f"{wanted} is wanted, not {shown(value)}", place_of_function(made_by, owner), asked
    )


def shown(value: object) -> str:
    """A wrong answer, cut short."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  code of the plug-in, too
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _is_of(frame: FrameType, owner: Owner) -> bool:
    return _is_file_of(frame.f_code.co_filename, owner)


def _is_file_of(file: str, owner: Owner) -> bool:
    return file == owner.origin or file.startswith(f"{owner.origin}/")
