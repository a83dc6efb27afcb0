"""The forms that a line of the log can have: one function for each, and the table of them.

text    2026-03-01T12:00:00.250Z info worker.ready boot_s=0.25 slot=0        for people, grep and awk
json    {"time": "2026-03-01T12:00:00.250Z", "level": "info", "event": "worker.ready", "boot_s": 0.25, "slot": 0}
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import lru_cache

Fields = dict[str, object]
Form = Callable[[float, str, str, Fields], bytes]
"""Makes one line that ends with a newline, of seconds since 1970, level, event and fields."""

# What may stand bare behind a `key=`; everything else is written as a JSON string, so that a line stays one line.
_bare = re.compile(r"[A-Za-z0-9\-_.:/@+,*()\[\]%&#~^{}<>|;!?$]+").fullmatch
# What JSON has a form for; anything else is written as text.
_PLAIN = (str, int, float, bool, type(None))


def text_line(at: float, level: str, event: str, fields: Fields) -> bytes:
    """`time level event key=value ...`"""
    pairs = "".join(f" {name}={_value(value)}" for name, value in fields.items())
    return f"{_time(at)} {level} {event}{pairs}\n".encode("utf-8", "backslashreplace")


def json_line(at: float, level: str, event: str, fields: Fields) -> bytes:
    """One JSON object; its first three keys are always the same."""
    row = {"time": _time(at), "level": level, "event": event} | {name: _json(value) for name, value in fields.items()}
    return f"{json.dumps(row, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")


FORMS: dict[str, Form] = {"text": text_line, "json": json_line}


def _time(at: float) -> str:
    """In UTC, with milliseconds."""
    return f"{_second(int(at))}.{int(at * 1000) % 1000:03d}Z"


@lru_cache(maxsize=2)
def _second(at: int) -> str:
    """Many lines are of one second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def _value(value: object) -> str:
    if type(value) is int:
        return str(value)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if _bare(text) else json.dumps(text, ensure_ascii=False)


def _json(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value if isinstance(value, _PLAIN) else str(value)
